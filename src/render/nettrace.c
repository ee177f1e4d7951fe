#include "render/nettrace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/kept_rows.h"
#include "clr/provider_names.h"
#include "render/nettrace_kept.h"
#include "render/nettrace_places.h"
#include "render/nettrace_stream.h"
#include "trace/facts.h"

enum {
    PAYLOAD_BYTES_MAX = 1 << 20,
    PERIOD_NS = 1000000, /* of the runtime's sampler */
};

/* What a sample said: outside managed code, or in it. */
enum sample_state { STATE_NOTHING, STATE_EXTERNAL = KEPT_STATE_OUTSIDE, STATE_MANAGED = KEPT_STATE_SAMPLE };

/* One thing to write. */
struct moment {
    uint64_t time_ns;
    uint32_t at;   /* sample or event */
    uint8_t state; /* enum sample_state; STATE_NOTHING: an event */
};

struct nettrace_writer {
    const struct trace *t;
    struct nettrace_stream stream;
    uint32_t process;
    struct moment *moments;
    size_t moment_count, moment_capacity;
    uint32_t *type_of;  /* by event type: the stream's, or 0 */
    uint32_t *stack_of; /* by stack: the stream's, or 0 */
    struct nettrace_places places;
    bool cpu_samples;
    uint32_t sample_types[2]; /* of wall time, of CPU time */
    uint64_t end_ns;
    struct buffer payload;
};

uint32_t nettrace_process(const struct trace *t, uint32_t *out_others)
{
    AUTO_FREE uint64_t *things = mem_alloc(t->processes.count, sizeof *things);
    uint32_t best = 0;
    for (size_t i = 0; i < t->samples.count; i++)
        things[t->threads.rows[t->samples.thread[i]].process]++;
    for (size_t i = 1; i < t->events.count; i++)
        things[t->events.rows[i].process]++;
    *out_others = 0;
    for (uint32_t i = 1; i < t->processes.count; i++) {
        *out_others += things[i] > 0;
        if (things[i] && (!best || things[i] > things[best]))
            best = i;
    }
    *out_others -= best != 0;
    return best;
}

/* What is written. */

static void add_moment(struct nettrace_writer *w, uint64_t time_ns, uint32_t at, enum sample_state state)
{
    w->moments = mem_grow(w->moments, &w->moment_capacity, w->moment_count + 1, sizeof *w->moments);
    w->moments[w->moment_count++] = (struct moment){ time_ns, at, (uint8_t)state };
    if (time_ns > w->end_ns)
        w->end_ns = time_ns;
}

static bool has_events_of(const struct trace *t, const char *provider)
{
    for (size_t i = 1; i < t->events.count; i++)
        if (strcmp(trace_string(t, t->event_types.rows[t->events.rows[i].type].provider), provider) == 0)
            return true;
    return false;
}

/* Readers count a sample until the thread's next one: where that comes late, the sample's own time is ended.
 */
static void add_samples(struct nettrace_writer *w)
{
    const struct trace_samples *s = &w->t->samples;
    if (has_events_of(w->t,
                      RUNTIME_SAMPLER_PROVIDER)) /* readers would take those and others for one thread's */
        return;
    AUTO_FREE uint64_t *next_ns = mem_alloc(w->t->threads.count, sizeof *next_ns);
    for (size_t i = s->count; i-- > 0;) {
        bool is_time = s->kind[i] == SAMPLE_CPU || s->kind[i] == SAMPLE_WALL;
        if (!is_time || w->t->threads.rows[s->thread[i]].process != w->process || i > UINT32_MAX)
            continue;
        uint64_t *next = &next_ns[s->thread[i]], end_ns = s->time_ns[i] + s->weight[i];
        w->cpu_samples |= s->kind[i] == SAMPLE_CPU;
        add_moment(w, s->time_ns[i], (uint32_t)i, STATE_MANAGED);
        if (!*next || *next > end_ns + s->weight[i] / 2)
            add_moment(w, end_ns, (uint32_t)i, STATE_EXTERNAL);
        *next = s->time_ns[i];
    }
}

static int moment_compare(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

static void collect(struct nettrace_writer *w)
{
    const struct trace *t = w->t;
    add_samples(w);
    for (uint32_t i = 1; i < t->events.count; i++)
        if (t->events.rows[i].process == w->process)
            add_moment(w, t->events.rows[i].time_ns, i, STATE_NOTHING);
    if (w->moment_count)
        qsort(w->moments, w->moment_count, sizeof *w->moments, moment_compare);
}

/* Stacks. */

static uint32_t stream_stack(struct nettrace_writer *w, uint32_t stack)
{
    const struct trace *t = w->t;
    uint64_t frames[TRACE_STACK_DEPTH_MAX + 1];
    size_t count = 0;
    uint32_t at = stack;
    if (stack <= STACK_WHOLE)
        return nettrace_stream_no_stack(&w->stream);
    if (w->stack_of[stack])
        return w->stack_of[stack];
    for (; at >= STACK_ROOTS && count < TRACE_STACK_DEPTH_MAX; at = t->stacks.rows[at].parent)
        frames[count++] = nettrace_places_frame(&w->places, t->stacks.rows[at].location);
    if (at != STACK_WHOLE)
        frames[count++] =
            nettrace_places_end(&w->places, at == STACK_BROKEN ? STACK_BROKEN : STACK_TRUNCATED);
    return w->stack_of[stack] = nettrace_stream_add_stack(&w->stream, frames, count);
}

/* Events. */

static uint32_t stream_type(struct nettrace_writer *w, uint32_t type)
{
    const struct trace *t = w->t;
    const struct trace_event_type *row = &t->event_types.rows[type];
    bool described = row->description == EVENT_DESCRIBED_V5; /* nettrace 4 cannot say it in the way of 6 */
    if (!w->type_of[type])
        w->type_of[type] = nettrace_stream_add_type(
            &w->stream, &(struct nettrace_stream_type){
                            .provider = trace_string(t, row->provider),
                            .name = trace_string(t, row->name),
                            .event_id = row->event_id,
                            .version = row->version,
                            .level = row->level,
                            .keywords = row->keywords,
                            .opcode = row->opcode,
                            .fields = described ? trace_string_span(t, row->fields) : (struct span){ 0 },
                            .params = described ? trace_string_span(t, row->params) : (struct span){ 0 },
                        });
    return w->type_of[type];
}

static void write_event(struct nettrace_writer *w, const struct moment *m)
{
    const struct trace *t = w->t;
    const struct trace_event *row = &t->events.rows[m->at];
    const struct trace_event_activity *activity = trace_event_activity(t, m->at);
    struct nettrace_stream_event event = {
        .type = stream_type(w, row->type),
        .stack = stream_stack(w, row->stack),
        .time_ns = m->time_ns,
        .thread_id = t->threads.rows[row->thread].tid,
        .payload = trace_event_payload(t, row),
    };
    if (activity) {
        event.activity = span_of(activity->id, sizeof activity->id);
        event.related_activity = span_of(activity->related, sizeof activity->related);
    }
    nettrace_stream_add_event(&w->stream, &event);
}

/* A sample of wall time says nothing more than the runtime's sampler would. */
static void put_sample(struct nettrace_writer *w, const struct moment *m)
{
    const struct trace_samples *s = &w->t->samples;
    if (s->kind[m->at] != SAMPLE_CPU)
        buffer_u32le(&w->payload, m->state);
    else
        kept_sample_append(&w->payload,
                           &(struct kept_sample){ m->state, s->cpu[m->at],
                                                  m->state == STATE_MANAGED ? s->weight[m->at] : 0 });
}

static void write_sample(struct nettrace_writer *w, const struct moment *m)
{
    const struct trace *t = w->t;
    bool is_cpu = t->samples.kind[m->at] == SAMPLE_CPU;
    if (!w->sample_types[is_cpu])
        w->sample_types[is_cpu] = nettrace_stream_add_type(
            &w->stream, &(struct nettrace_stream_type){ .provider = RUNTIME_SAMPLER_PROVIDER,
                                                        .name = "",
                                                        .version = is_cpu ? KEPT_SAMPLE_VERSION : 0,
                                                        .level = 4 });
    put_sample(w, m);
    nettrace_stream_add_event(&w->stream, &(struct nettrace_stream_event){
                                              .type = w->sample_types[is_cpu],
                                              .stack = m->state == STATE_MANAGED
                                                           ? stream_stack(w, t->samples.stack[m->at])
                                                           : nettrace_stream_no_stack(&w->stream),
                                              .time_ns = m->time_ns,
                                              .thread_id = t->threads.rows[t->samples.thread[m->at]].tid,
                                              .payload = buffer_span(&w->payload),
                                          });
    buffer_clear(&w->payload);
}

/* The end. */

/* Whose stream it is, unless it came with that. */
static void write_process_info(struct nettrace_writer *w)
{
    enum { TYPE_STRING = 18 };
    static const char *const names[] = { "CommandLine", "OSInformation", "ArchInformation" };
    const struct trace *t = w->t;
    const char *arch = trace_fact_value(t, FACT_ARCH);
    const struct trace_process *process = &t->processes.rows[w->process];
    const char *values[] = { trace_string(t, process->command_line ? process->command_line : process->name),
                             "Linux", arch ? arch : "" };
    if (has_events_of(t, RUNTIME_STREAM_PROVIDER))
        return;
    struct buffer fields;
    buffer_init(&fields, PAYLOAD_BYTES_MAX);
    buffer_u32le(&fields, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        buffer_u32le(&fields, TYPE_STRING);
        utf16_append_zstring(&fields, span_of(names[i], strlen(names[i])));
        utf16_append_zstring(&w->payload, span_of(values[i], strlen(values[i])));
    }
    uint32_t type = nettrace_stream_add_type(
        &w->stream, &(struct nettrace_stream_type){ .provider = RUNTIME_STREAM_PROVIDER,
                                                    .name = "ProcessInfo",
                                                    .event_id = 1,
                                                    .version = 1,
                                                    .keywords = KEPT_TOLD_KEYWORD,
                                                    .fields = buffer_span(&fields) });
    nettrace_stream_tell(&w->stream, type, w->end_ns, &w->payload);
    buffer_done(&fields);
}

/* Says that all names were told. */
static void write_done(struct nettrace_writer *w)
{
    enum { DONE = 146, KEYWORD_DONE = 0x20038 };
    uint32_t type = nettrace_stream_add_type(
        &w->stream, &(struct nettrace_stream_type){ .provider = RUNTIME_RUNDOWN_PROVIDER,
                                                    .name = "",
                                                    .event_id = DONE,
                                                    .version = 1,
                                                    .level = 4,
                                                    .keywords = KEYWORD_DONE | KEPT_TOLD_KEYWORD });
    buffer_u16le(&w->payload, 0); /* runtime instance */
    nettrace_stream_tell(&w->stream, type, w->end_ns, &w->payload);
}

static void write_end(struct nettrace_writer *w)
{
    write_process_info(w);
    nettrace_places_tell(&w->places, &w->stream, w->end_ns);
    write_done(w);
}

/* All together. */

static uint64_t lost_events(const struct nettrace_writer *w)
{
    uint64_t lost = 0;
    for (size_t i = 1; i < w->t->losses.count; i++)
        if (w->t->losses.rows[i].reason == LOSS_RUNTIME)
            lost += w->t->losses.rows[i].count;
    return lost < INT32_MAX ? lost : INT32_MAX;
}

/* Ends the ids of stacks, where there are too many. */
static void write_point(struct nettrace_writer *w, uint64_t time_ns)
{
    if (!nettrace_stream_wants_point(&w->stream))
        return;
    nettrace_stream_add_point(&w->stream, time_ns, 0);
    memset(w->stack_of, 0, w->t->stacks.count * sizeof *w->stack_of);
}

static bool write_all(struct nettrace_writer *w, struct output *out, struct error *err)
{
    const struct trace *t = w->t;
    const struct trace_process *process = &t->processes.rows[w->process];
    uint64_t first_ns = w->moments[0].time_ns, start_ns = 0, realtime_ns = 0, processors = 0;
    trace_fact_number(t, FACT_STARTED_MONOTONIC_NS, &start_ns);
    trace_fact_number(t, FACT_STARTED_REALTIME_NS, &realtime_ns);
    trace_fact_number(t, FACT_CPUS, &processors);
    if (!start_ns || start_ns > first_ns) {
        realtime_ns -= start_ns && realtime_ns > start_ns - first_ns ? start_ns - first_ns : 0;
        start_ns = first_ns;
    }
    nettrace_stream_begin(&w->stream,
                          &(struct nettrace_stream_head){
                              .start_ns = start_ns,
                              .realtime_ns = realtime_ns,
                              .pointer_size = 8,
                              .process_id = process->ns_pid ? process->ns_pid : process->pid,
                              .processors = (uint32_t)processors,
                              .sampling_period_ns = PERIOD_NS,
                          },
                          out);
    nettrace_kept_write(t, w->process, w->cpu_samples, &w->stream);
    for (size_t i = 0; i < w->moment_count; i++) {
        if (w->moments[i].state == STATE_NOTHING)
            write_event(w, &w->moments[i]);
        else
            write_sample(w, &w->moments[i]);
        write_point(w, w->moments[i].time_ns);
    }
    write_end(w);
    nettrace_stream_add_point(&w->stream, w->end_ns, lost_events(w));
    return nettrace_stream_end(&w->stream, err);
}

bool nettrace_write(const struct trace *t, struct output *out, struct error *err)
{
    uint32_t others;
    struct nettrace_writer w = { .t = t, .process = nettrace_process(t, &others) };
    bool ok = true;
    collect(&w);
    if (w.moment_count) {
        w.type_of = mem_alloc(t->event_types.count, sizeof *w.type_of);
        w.stack_of = mem_alloc(t->stacks.count, sizeof *w.stack_of);
        nettrace_places_init(&w.places, t);
        buffer_init(&w.payload, PAYLOAD_BYTES_MAX);
        ok = write_all(&w, out, err);
        buffer_done(&w.payload);
        free(w.type_of);
        free(w.stack_of);
        nettrace_places_done(&w.places);
    }
    free(w.moments);
    if (!w.moment_count)
        return error_set(err, ERROR_INPUT, "there are neither samples of time nor events");
    return ok && output_ok(out, err);
}
