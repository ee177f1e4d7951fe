#include "render/speedscope.h"

#include <string.h>

#include "render/frame_text.h"
#include "render/json_text.h"
#include "render/path_text.h"
#include "render/sample_groups.h"

/* Some of the profile's samples: by index, or all of them when `sample` is NULL. */
struct selection {
    const uint32_t *sample;
    size_t count;
};

static size_t selected(const struct selection *selection, size_t i)
{
    return selection->sample ? selection->sample[i] : i;
}

/* Where the run of equal stacks that begins at `first` ends; its weight is added up. */
static size_t run_end(const struct profile *p, const struct selection *s, size_t first, uint64_t *weight)
{
    uint32_t node = p->sample_node[selected(s, first)];
    size_t end = first;
    for (*weight = 0; end < s->count && p->sample_node[selected(s, end)] == node; end++)
        *weight += p->sample_weight[selected(s, end)];
    return end;
}

static void write_samples(const struct profile *p, const struct selection *s, struct path_text *path,
                          struct output *out)
{
    uint64_t weight = 0;
    output_text(out, ",\"samples\":[");
    for (size_t i = 0; i < s->count && !out->failed;) {
        json_comma(out, i);
        output_char(out, '[');
        output_span(out, path_text_of(path, p->sample_node[selected(s, i)]));
        output_char(out, ']');
        i = run_end(p, s, i, &weight);
    }
    output_text(out, "],\"weights\":[");
    for (size_t i = 0; i < s->count && !out->failed;) {
        json_comma(out, i);
        i = run_end(p, s, i, &weight);
        output_u64(out, weight);
    }
    output_char(out, ']');
}

static const char *speedscope_unit(const struct profile *p)
{
    if (strcmp(p->weight_unit, "ns") == 0)
        return "nanoseconds";
    return strcmp(p->weight_unit, "bytes") == 0 ? "bytes" : "none";
}

static void write_profile(const struct profile *p, const char *name, const struct selection *s,
                          struct path_text *path, struct output *out)
{
    uint64_t total = 0;
    for (size_t i = 0; i < s->count; i++)
        total += p->sample_weight[selected(s, i)];
    output_text(out, "\n{\"type\":\"sampled\"");
    json_member(out, false, "name", name);
    json_member(out, false, "unit", speedscope_unit(p));
    json_member_u64(out, "startValue", 0);
    json_member_u64(out, "endValue", total);
    write_samples(p, s, path, out);
    output_char(out, '}');
}

static void write_frames(const struct profile *p, const struct export_options *options, struct output *out)
{
    struct buffer name;
    buffer_init(&name, SIZE_MAX);
    output_text(out, ",\n\"shared\":{\"frames\":[");
    for (uint32_t id = 1; id < p->frame_count; id++) {
        const struct profile_frame *frame = &p->frames[id];
        buffer_clear(&name);
        frame_text_name(&name, frame, options);
        buffer_u8(&name, 0);
        json_comma(out, id - 1);
        output_text(out, "\n{");
        json_member(out, true, "name", (const char *)name.data);
        /* speedscope colours by it, so a module is better than nothing */
        const char *file = frame->file ? frame->file : frame->module;
        if (*file)
            json_member(out, false, "file", file);
        if (frame->file && frame->line)
            json_member_u64(out, "line", frame->line);
        output_char(out, '}');
    }
    output_text(out, "]}");
    buffer_done(&name);
}

static void write_threads(const struct profile *p, struct path_text *path, struct output *out)
{
    struct thread_samples by_thread;
    struct buffer name;
    thread_samples_init(&by_thread, p);
    buffer_init(&name, SIZE_MAX);
    for (uint32_t thread = 0; thread < p->thread_count; thread++) {
        size_t start = by_thread.start[thread];
        struct selection s = { by_thread.sample + start, by_thread.start[thread + 1] - start };
        if (s.count == 0)
            continue;
        buffer_clear(&name);
        buffer_format(&name, "%s %u/%u", profile_thread_comm(p, thread), p->threads[thread].pid,
                      p->threads[thread].tid);
        buffer_u8(&name, 0);
        output_char(out, ',');
        write_profile(p, (const char *)name.data, &s, path, out);
    }
    buffer_done(&name);
    thread_samples_done(&by_thread);
}

static void render_index(struct buffer *into, const struct profile_frame *frame, uint32_t id,
                         const struct export_options *options)
{
    (void)frame;
    (void)options;
    buffer_format(into, "%u", id - 1);
}

bool speedscope_write(const struct profile *p, const struct export_options *options, struct output *out,
                      struct error *err)
{
    struct frame_texts indices;
    struct path_text path;

    output_text(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"");
    json_member(out, false, "exporter", "clrperf");
    json_member(out, false, "name", options->title ? options->title : p->title);
    json_member_u64(out, "activeProfileIndex", 0);
    write_frames(p, options, out);
    output_text(out, ",\n\"profiles\":[");
    frame_texts_init(&indices, p, options, render_index);
    path_text_init(&path, p, &indices, ',');
    path_text_root(&path, "");
    write_profile(p, "All threads", &(struct selection){ .count = p->sample_count }, &path, out);
    write_threads(p, &path, out);
    output_text(out, "]}\n");
    path_text_done(&path);
    frame_texts_done(&indices);
    return output_ok(out, err);
}
