#include "render/chromium.h"

#include <stdlib.h>

#include "base/mem.h"
#include "render/frame_text.h"
#include "render/json_text.h"
#include "render/sample_groups.h"

enum {
    PATH_MAX_FRAMES = TRACE_STACK_DEPTH_MAX + 1,
    RUNTIME_TRACK = 1 << 22, /* no thread has a number from here on */
    GAP_PERIODS = 3,         /* a thread without a sample for as long did something else in between */
    PERIOD_UNKNOWN_NS = 1000000,
};

struct chromium {
    const struct profile *profile;
    struct output *out;
    struct frame_texts names; /* JSON strings, quoted */
    size_t written;
    uint32_t *pids; /* of which the tracks have names */
    size_t pid_count, pid_capacity;
};

static void write_us(struct output *out, uint64_t ns)
{
    output_fixed(out, ns, 3);
}

/* `{"ph":"B","pid":7,"tid":9,"ts":12.345`, without the end. */
static void begin_event(struct chromium *w, char phase, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    json_comma(w->out, w->written++);
    output_text(w->out, "\n{\"ph\":\"");
    output_char(w->out, phase);
    output_text(w->out, "\",\"pid\":");
    output_u64(w->out, pid);
    output_text(w->out, ",\"tid\":");
    output_u64(w->out, tid);
    output_text(w->out, ",\"ts\":");
    write_us(w->out, time_ns);
}

static void write_name(struct chromium *w, const char *what, uint32_t pid, uint32_t tid, const char *name)
{
    begin_event(w, 'M', pid, tid, 0);
    json_member(w->out, false, "name", what);
    output_text(w->out, ",\"args\":{");
    json_member(w->out, true, "name", name);
    output_text(w->out, "}}");
}

/* Samples. */

/* How long a sample stands for its thread, at most. */
static uint64_t period_of(const struct profile *p)
{
    return p->rate_hz > 0 ? (uint64_t)(1e9 / p->rate_hz) : PERIOD_UNKNOWN_NS;
}

/* The functions of one thread that are open. */
struct open_path {
    uint32_t nodes[PATH_MAX_FRAMES];
    size_t depth;
};

static void close_to(struct chromium *w, struct open_path *open, size_t depth,
                     const struct profile_thread *thread, uint64_t time_ns)
{
    for (; open->depth > depth; open->depth--) {
        begin_event(w, 'E', thread->pid, thread->tid, time_ns);
        output_char(w->out, '}');
    }
}

static void open_to(struct chromium *w, struct open_path *open, uint32_t node,
                    const struct profile_thread *thread, uint64_t time_ns)
{
    const struct profile *p = w->profile;
    uint32_t path[PATH_MAX_FRAMES];
    size_t depth = 0, same = 0;
    for (; node && depth < PATH_MAX_FRAMES; node = p->nodes[node].parent)
        path[depth++] = node;
    while (same < open->depth && same < depth && open->nodes[same] == path[depth - 1 - same])
        same++;
    close_to(w, open, same, thread, time_ns);
    for (; open->depth < depth; open->depth++) {
        uint32_t at = path[depth - 1 - open->depth];
        open->nodes[open->depth] = at;
        begin_event(w, 'B', thread->pid, thread->tid, time_ns);
        output_text(w->out, ",\"cat\":\"sample\",\"name\":");
        output_span(w->out, frame_text(&w->names, p->nodes[at].frame));
        output_char(w->out, '}');
    }
}

static void write_thread(struct chromium *w, uint32_t id, const uint32_t *samples, size_t count)
{
    const struct profile *p = w->profile;
    const struct profile_thread *thread = &p->threads[id];
    struct open_path open = { .depth = 0 };
    /* of wall time each sample says how long it stands for its thread */
    uint64_t period_ns = period_of(p), gap_ns = p->is_wall ? 0 : GAP_PERIODS * period_ns, end_ns = 0;
    write_name(w, "thread_name", thread->pid, thread->tid, profile_thread_comm(p, id));
    for (size_t i = 0; i < count && !w->out->failed; i++) {
        uint64_t time_ns = p->sample_time_ns[samples[i]];
        if (time_ns > end_ns + gap_ns)
            close_to(w, &open, 0, thread, end_ns);
        open_to(w, &open, p->sample_node[samples[i]], thread, time_ns);
        end_ns = time_ns + (p->is_wall ? p->sample_weight[samples[i]] : period_ns);
    }
    close_to(w, &open, 0, thread, end_ns);
}

static void write_threads(struct chromium *w)
{
    const struct profile *p = w->profile;
    struct thread_samples by_thread;
    thread_samples_init(&by_thread, p);
    for (uint32_t id = 0; id < p->thread_count; id++) {
        size_t start = by_thread.start[id], count = by_thread.start[id + 1] - start;
        if (count)
            write_thread(w, id, by_thread.sample + start, count);
    }
    thread_samples_done(&by_thread);
}

/* What runtimes told. */

/* The tracks of a process are named when the first mark comes to lie on one. */
static void name_tracks(struct chromium *w, uint32_t pid)
{
    for (size_t i = 0; i < w->pid_count; i++)
        if (w->pids[i] == pid)
            return;
    w->pids = mem_grow(w->pids, &w->pid_capacity, w->pid_count + 1, sizeof *w->pids);
    w->pids[w->pid_count++] = pid;
    write_name(w, "thread_name", pid, RUNTIME_TRACK + TIMELINE_PAUSE, ".NET GC pauses");
    write_name(w, "thread_name", pid, RUNTIME_TRACK + TIMELINE_COLLECTION, ".NET GC");
}

/* Of pauses and collections one track holds what lies in one another; exceptions are where they were thrown.
 */
static void write_mark(struct chromium *w, const struct timeline_mark *mark)
{
    bool instant = mark->kind == TIMELINE_EXCEPTION;
    if (!instant)
        name_tracks(w, mark->pid);
    begin_event(w, instant ? 'i' : 'X', mark->pid, instant ? mark->tid : (uint32_t)RUNTIME_TRACK + mark->kind,
                mark->from_ns);
    output_text(w->out, instant ? ",\"s\":\"t\"" : ",\"dur\":");
    if (!instant)
        write_us(w->out, mark->to_ns > mark->from_ns ? mark->to_ns - mark->from_ns : 0);
    json_member(w->out, false, "cat", "dotnet");
    json_member(w->out, false, "name", timeline_kind_name((enum timeline_kind)mark->kind));
    output_text(w->out, ",\"args\":{");
    json_member(w->out, true, "what", mark->text);
    output_text(w->out, "}}");
}

static void write_size(struct chromium *w, const struct timeline_size *size)
{
    begin_event(w, 'C', size->pid, RUNTIME_TRACK, size->time_ns);
    output_text(w->out, ",\"name\":\"GC heap\",\"args\":{\"bytes\":");
    output_u64(w->out, size->bytes);
    output_text(w->out, "}}");
}

static void write_timeline(struct chromium *w)
{
    const struct timeline *told = &w->profile->timeline;
    for (size_t i = 0; i < told->mark_count && !w->out->failed; i++)
        write_mark(w, &told->marks[i]);
    for (size_t i = 0; i < told->size_count && !w->out->failed; i++)
        write_size(w, &told->sizes[i]);
}

static void write_processes(struct chromium *w)
{
    const struct profile *p = w->profile;
    for (uint32_t i = 1; i < p->process_count; i++)
        write_name(w, "process_name", p->processes[i].pid, RUNTIME_TRACK, p->processes[i].name);
}

static void render_json(struct buffer *into, const struct profile_frame *frame, uint32_t id,
                        const struct export_options *options)
{
    (void)id;
    struct buffer name;
    struct output out;
    buffer_init(&name, SIZE_MAX);
    frame_text_name(&name, frame, options);
    buffer_u8(&name, 0);
    output_over_buffer(&out, into);
    json_text_string(&out, (const char *)name.data);
    output_close(&out, NULL);
    buffer_done(&name);
}

bool chromium_write(const struct profile *p, const struct export_options *options, struct output *out,
                    struct error *err)
{
    struct chromium w = { .profile = p, .out = out };
    frame_texts_init(&w.names, p, options, render_json);
    output_text(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{");
    json_member(out, true, "exporter", "clrperf");
    json_member(out, false, "title", options->title ? options->title : p->title);
    output_text(out, "},\n\"traceEvents\":[");
    write_processes(&w);
    write_threads(&w);
    write_timeline(&w);
    output_text(out, "]}\n");
    frame_texts_done(&w.names);
    free(w.pids);
    return output_ok(out, err);
}
