#include "render/profile_json.h"

#include "render/frame_text.h"
#include "render/json_text.h"

static void write_text(struct output *out, const char *key, const char *text)
{
    output_char(out, ',');
    json_text_string(out, key);
    output_char(out, ':');
    json_string_or_null(out, text);
}

/* An index of ours, which counts from 1, as one from 0. */
static void write_index(struct output *out, uint32_t id)
{
    if (id)
        output_u64(out, id - 1);
    else
        output_text(out, "null");
}

static void write_head(const struct profile *p, const struct export_options *options, struct output *out)
{
    output_text(out, "{\"schema\":\"clrperf.profile/1\"");
    write_text(out, "title", options->title ? options->title : p->title);
    write_text(out, "event", p->event);
    write_text(out, "unit", p->weight_unit);
    output_text(out, ",\"rate_hz\":");
    if (p->rate_hz > 0)
        json_text_double(out, p->rate_hz);
    else
        output_text(out, "null");
    output_text(out, ",\"started_s\":");
    if (p->start_realtime_ns)
        output_fixed(out, p->start_realtime_ns, 9);
    else
        output_text(out, "null");
    json_member_u64(out, "start_monotonic_ns", p->start_monotonic_ns);
    json_member_u64(out, "duration_ns", p->duration_ns);
    output_text(out, ",\n\"totals\":{\"samples\":");
    output_u64(out, p->counts.samples);
    json_member_u64(out, "weight", p->counts.weight);
    json_member_u64(out, "lost", p->counts.lost);
    json_member_u64(out, "whole", p->counts.whole);
    json_member_u64(out, "truncated", p->counts.truncated);
    json_member_u64(out, "broken", p->counts.broken);
    output_char(out, '}');
}

static void write_processes(const struct profile *p, struct output *out)
{
    output_text(out, ",\n\"processes\":[");
    for (uint32_t id = 1; id < p->process_count; id++) {
        const struct profile_process *process = &p->processes[id];
        json_comma(out, id - 1);
        output_text(out, "\n{\"pid\":");
        output_u64(out, process->pid);
        write_text(out, "name", process->name);
        write_text(out, "runtime_version", process->runtime_version);
        write_text(out, "container", process->container);
        output_char(out, '}');
    }
    output_text(out, "],\n\"threads\":[");
    for (uint32_t id = 1; id < p->thread_count; id++) {
        const struct profile_thread *thread = &p->threads[id];
        json_comma(out, id - 1);
        output_text(out, "\n{\"pid\":");
        output_u64(out, thread->pid);
        json_member_u64(out, "tid", thread->tid);
        write_text(out, "name", thread->name);
        write_text(out, "process", thread->process_name);
        json_member_u64(out, "samples", thread->samples);
        json_member_u64(out, "weight", thread->weight);
        output_char(out, '}');
    }
    output_char(out, ']');
}

static void write_frames(const struct profile *p, const struct export_options *options, struct output *out)
{
    struct buffer name;
    buffer_init(&name, SIZE_MAX);
    output_text(out, ",\n\"frames\":[");
    for (uint32_t id = 1; id < p->frame_count; id++) {
        const struct profile_frame *frame = &p->frames[id];
        buffer_clear(&name);
        frame_text_name(&name, frame, options);
        buffer_u8(&name, 0);
        json_comma(out, id - 1);
        output_text(out, "\n{\"name\":");
        json_text_string(out, (const char *)name.data);
        write_text(out, "module", frame->module);
        write_text(out, "kind", code_kind_name(frame->kind));
        write_text(out, "tier", code_tier_name(frame->tier));
        write_text(out, "file", frame->file);
        output_text(out, ",\"line\":");
        if (frame->line)
            output_u64(out, frame->line);
        else
            output_text(out, "null");
        output_char(out, '}');
    }
    output_char(out, ']');
    buffer_done(&name);
}

static void write_nodes(const struct profile *p, struct output *out)
{
    output_text(out, ",\n\"nodes\":{\"parent\":[null");
    for (uint32_t node = 1; node < p->node_count; node++) {
        output_char(out, ',');
        output_u64(out, p->nodes[node].parent);
    }
    output_text(out, "],\n\"frame\":[null");
    for (uint32_t node = 1; node < p->node_count; node++) {
        output_char(out, ',');
        write_index(out, p->nodes[node].frame);
    }
    output_text(out, "],\n\"self\":[");
    for (uint32_t node = 0; node < p->node_count; node++) {
        json_comma(out, node);
        output_u64(out, p->self[node]);
    }
    output_text(out, "]}");
}

static void write_column(const struct profile *p, const char *key, const uint64_t *values, struct output *out)
{
    output_text(out, ",\n");
    json_text_string(out, key);
    output_text(out, ":[");
    for (size_t i = 0; i < p->sample_count; i++) {
        json_comma(out, i);
        output_u64(out, values[i]);
    }
    output_char(out, ']');
}

static void write_samples(const struct profile *p, struct output *out)
{
    output_text(out, ",\n\"samples\":{\"node\":[");
    for (size_t i = 0; i < p->sample_count; i++) {
        json_comma(out, i);
        output_u64(out, p->sample_node[i]);
    }
    output_text(out, "],\n\"thread\":[");
    for (size_t i = 0; i < p->sample_count; i++) {
        json_comma(out, i);
        write_index(out, p->sample_thread[i]);
    }
    output_text(out, "],\n\"cpu\":[");
    for (size_t i = 0; i < p->sample_count; i++) {
        json_comma(out, i);
        output_u64(out, p->sample_cpu[i]);
    }
    output_char(out, ']');
    write_column(p, "time_ns", p->sample_time_ns, out);
    write_column(p, "weight", p->sample_weight, out);
    output_char(out, '}');
}

bool profile_json_write(const struct profile *p, const struct export_options *options, struct output *out,
                        struct error *err)
{
    write_head(p, options, out);
    write_processes(p, out);
    write_frames(p, options, out);
    write_nodes(p, out);
    write_samples(p, out);
    output_text(out, "}\n");
    return output_ok(out, err);
}
