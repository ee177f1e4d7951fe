#include "render/speedscope.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "render/frame_text.h"
#include "render/json_text.h"
#include "render/path_text.h"
#include "render/sample_groups.h"

/* Slices of the time, in which threads that run side by side are told one after the other. */
enum { SLICES = 1000 };

/* Some of the profile's samples, by index. */
struct selection {
    const uint32_t *sample;
    size_t count;
};

/* Where the run of equal stacks that begins at `first` ends; its weight is added up. */
static size_t run_end(const struct profile *p, const struct selection *s, size_t first, uint64_t *weight)
{
    uint32_t node = p->sample_node[s->sample[first]];
    size_t end = first;
    for (*weight = 0; end < s->count && p->sample_node[s->sample[end]] == node; end++)
        *weight += p->sample_weight[s->sample[end]];
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
        output_span(out, path_text_of(path, p->sample_node[s->sample[i]]));
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
        total += p->sample_weight[s->sample[i]];
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

static uint64_t slice_end_ns(const struct profile *p, uint64_t slice)
{
    uint64_t first_ns = p->sample_time_ns[0], span_ns = p->sample_time_ns[p->sample_count - 1] - first_ns;
    return first_ns + span_ns / SLICES * slice + span_ns % SLICES * slice / SLICES;
}

/*
 * In the order of time, but within a slice of it by thread: what a thread did there becomes one run or a few,
 * where samples of many threads in turns would not.
 */
static void write_all(const struct profile *p, const struct thread_samples *by_thread, struct path_text *path,
                      struct output *out)
{
    uint32_t *order = mem_alloc(p->sample_count, sizeof *order);
    size_t *next = mem_alloc((size_t)p->thread_count + 1, sizeof *next), count = 0;
    for (size_t thread = 0; thread < p->thread_count; thread++)
        next[thread] = by_thread->start[thread];
    for (uint64_t slice = 1; slice <= SLICES && count < p->sample_count; slice++) {
        uint64_t end_ns = slice_end_ns(p, slice);
        for (size_t thread = 0; thread < p->thread_count; thread++)
            while (next[thread] < by_thread->start[thread + 1] &&
                   p->sample_time_ns[by_thread->sample[next[thread]]] <= end_ns)
                order[count++] = by_thread->sample[next[thread]++];
    }
    write_profile(p, "All threads", &(struct selection){ order, count }, path, out);
    free(next);
    free(order);
}

static void write_threads(const struct profile *p, const struct thread_samples *by_thread,
                          struct path_text *path, struct output *out)
{
    struct buffer name;
    buffer_init(&name, SIZE_MAX);
    for (uint32_t thread = 0; thread < p->thread_count; thread++) {
        size_t start = by_thread->start[thread];
        struct selection s = { by_thread->sample + start, by_thread->start[thread + 1] - start };
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
    struct thread_samples by_thread;

    output_text(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"");
    json_member(out, false, "exporter", "clrperf");
    json_member(out, false, "name", options->title ? options->title : p->title);
    json_member_u64(out, "activeProfileIndex", 0);
    write_frames(p, options, out);
    output_text(out, ",\n\"profiles\":[");
    frame_texts_init(&indices, p, options, render_index);
    path_text_init(&path, p, &indices, ',');
    path_text_root(&path, "");
    thread_samples_init(&by_thread, p);
    write_all(p, &by_thread, &path, out);
    write_threads(p, &by_thread, &path, out);
    output_text(out, "]}\n");
    thread_samples_done(&by_thread);
    path_text_done(&path);
    frame_texts_done(&indices);
    return output_ok(out, err);
}
