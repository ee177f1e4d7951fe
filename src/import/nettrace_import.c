#include "import/nettrace_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "base/utf8.h"
#include "clr/provider_names.h"
#include "import/gc_stops.h"
#include "import/import_note.h"
#include "import/kept_import.h"
#include "import/nettrace_methods.h"
#include "import/process_facts.h"
#include "import/provider_uses.h"
#include "import/stack_mark.h"
#include "import/stream_threads.h"
#include "import/thread_time.h"
#include "import/type_job.h"
#include "import/universal_import.h"
#include "read/nettrace.h"
#include "trace/facts.h"

enum {
    FRAMES_MAX = 1024,
    TEXT_MAX = 1 << 20,
    GAPS_MAX = 1024,
};

/* A type of the stream; its number is the reader's mark. */
struct imported_type {
    const struct nettrace_type *told; /* the reader's */
    uint32_t type;                    /* of the trace */
    uint8_t job;
    uint8_t want;      /* enum import_want */
    uint8_t kind;      /* enum runtime_event_kind */
    uint8_t universal; /* enum universal_event */
    bool verbose;
    bool rundown; /* told about the recording, when it was over or by who wrote it: nobody asked for it */
    uint32_t provider;
    uint32_t noted_of; /* the process whose use of the provider was noted last */
};

struct nettrace_import {
    struct trace_builder *b;
    const struct import_options *options;
    struct nettrace_reader *reader;
    struct nettrace_methods methods;
    struct kept_import kept;
    struct imported_type *types; /* [0] is unused */
    size_t type_count, type_capacity;
    struct provider_uses uses;
    struct stream_threads threads;
    struct buffer text;
    uint32_t process; /* of the trace; whose event is looked at */
    uint64_t pid;     /* its number */
    uint64_t first_ns, last_ns, point_ns;
    uint64_t lost; /* since the last sequence point */
    struct thread_time wall;
    struct gc_stops stops;
    struct universal_import universal;
    uint64_t no_room; /* events that were not kept */
};

/* Types. */

/* The process whose event is looked at has one of this type: somebody asked its provider for it. */
static void note_use(struct nettrace_import *in, struct imported_type *type)
{
    if (!in->process || type->noted_of == in->process || type->rundown)
        return;
    type->noted_of = in->process;
    provider_uses_note(&in->uses, in->process, type->provider, type->told->keywords, type->told->level);
}

static uint32_t add_type(struct nettrace_import *in, uint32_t provider, const struct nettrace_type *type)
{
    struct trace *t = &in->b->trace;
    return trace_builder_event_type(
        in->b, &(struct trace_event_type){
                   .provider = provider,
                   .name = trace_add_utf16(&in->b->trace, type->name),
                   .event_id = type->event_id,
                   .version = type->version,
                   .fields = trace_add_span(t, type->fields),
                   .params = trace_add_span(t, type->params),
                   .keywords = type->keywords,
                   .level = type->level < UINT8_MAX ? (uint8_t)type->level : UINT8_MAX,
                   .opcode = type->opcode,
                   .description = type->is_v6 ? EVENT_DESCRIBED_V6 : EVENT_DESCRIBED_V5,
                   .pointer_size = (uint8_t)nettrace_reader_info(in->reader)->pointer_size,
               });
}

/* Whose events clrperf writes itself, where the capture has none; others may have any keyword. */
static bool tells_names(const char *provider)
{
    return strcmp(provider, RUNTIME_RUNDOWN_PROVIDER) == 0 || strcmp(provider, RUNTIME_STREAM_PROVIDER) == 0;
}

/* Types of clrperf's own have no events of the capture. */
static enum import_want want_of(const struct nettrace_import *in, const struct imported_type *row,
                                const char *provider, const struct nettrace_type *told)
{
    if (row->job == JOB_KEPT_SAMPLE || strcmp(provider, KEPT_PROVIDER) == 0 ||
        (in->kept.any && (told->keywords & KEPT_TOLD_KEYWORD) && tells_names(provider)))
        return IMPORT_NOTHING;
    return in->options->wants ? in->options->wants(in->options->user, provider, told->event_id)
                              : IMPORT_PAYLOADS;
}

/* A type that is a row of ours, of which no events come. */
static void take_kept(struct nettrace_import *in, const struct nettrace_type *type)
{
    buffer_clear(&in->text);
    utf16_append_utf8(&in->text, type->name);
    kept_import_take(&in->kept, in->b, in->process, type->event_id, buffer_span(&in->text));
}

static bool on_type(void *user, struct nettrace_type *type, struct error *err)
{
    struct nettrace_import *in = user;
    uint32_t provider = trace_add_utf16(&in->b->trace, type->provider);
    const char *name = trace_string(&in->b->trace, provider);
    struct imported_type row = {
        .kind = (uint8_t)runtime_event_kind_named(name, type->event_id),
        .verbose = runtime_event_is_verbose(type->provider, type->event_id),
        .rundown = strcmp(name, RUNTIME_RUNDOWN_PROVIDER) == 0,
    };
    (void)err;
    if (strcmp(name, KEPT_PROVIDER) == 0 && in->process)
        take_kept(in, type);
    row.universal = (uint8_t)universal_event_named(
        name, trace_string(&in->b->trace, trace_add_utf16(&in->b->trace, type->name)));
    row.job = (uint8_t)type_job_of(&(struct type_job_facts){
        .provider = name,
        .event_id = type->event_id,
        .kind = (enum runtime_event_kind)row.kind,
        .universal = row.universal,
        .rundown = row.rundown,
        .kept = in->kept.any && type->version == KEPT_SAMPLE_VERSION,
    });
    row.want = (uint8_t)want_of(in, &row, name, type);
    if (row.want == IMPORT_COUNTS && type_job_is_for_stacks((enum type_job)row.job))
        row.job = JOB_NONE;
    row.rundown |= row.job == JOB_KEPT_SAMPLE;
    if (row.want != IMPORT_NOTHING)
        row.type = add_type(in, provider, type);
    row.provider = provider;
    if (in->type_count == 0)
        in->type_count = 1;
    in->types = mem_grow(in->types, &in->type_capacity, in->type_count + 1, sizeof *in->types);
    in->types[in->type_count] = row;
    in->types[in->type_count].told = type;
    type->mark = in->type_count++;
    if (row.job == JOB_NONE && row.want < IMPORT_EVENTS)
        type->wanted = row.want == IMPORT_COUNTS ? NETTRACE_TIME : NETTRACE_COUNT;
    else if (row.job == JOB_SAMPLE && row.want == IMPORT_NOTHING)
        type->wanted = NETTRACE_SAMPLE;
    return true;
}

/* Events. */

static uint32_t thread_of(struct nettrace_import *in, uint64_t tid, uint64_t time_ns)
{
    return stream_threads_row(&in->threads, in->b, in->process, tid, time_ns);
}

/* Leaf first. False when there are none. */
static size_t read_frames(const struct nettrace_import *in, struct span stack, uint64_t frames[FRAMES_MAX])
{
    size_t width = nettrace_reader_info(in->reader)->pointer_size, count = stack.size / width;
    if (count > FRAMES_MAX)
        count = FRAMES_MAX; /* more than the trace keeps */
    for (size_t i = 0; i < count; i++)
        frames[i] = width == 8 ? load_u64le(stack.data + 8 * i) : load_u32le(stack.data + 4 * i);
    return count;
}

static uint32_t stack_read(struct nettrace_import *in, struct span addresses, uint64_t time_ns,
                           bool is_sample)
{
    uint64_t frames[FRAMES_MAX];
    enum stack_end end = STACK_WHOLE;
    size_t count = read_frames(in, addresses, frames);
    if (in->kept.any && count)
        end = kept_stack_end(frames[count - 1]);
    uint32_t stack = trace_builder_stack(in->b, in->process, frames, count - (end != STACK_WHOLE), is_sample,
                                         time_ns, end);
    return is_sample || count ? stack : 0;
}

static uint32_t stack_of(struct nettrace_import *in, struct span addresses, uint64_t *mark, uint64_t time_ns,
                         bool is_sample)
{
    uint32_t stack = stack_mark_get(mark, in->process, is_sample);
    if (stack)
        return stack;
    stack = stack_read(in, addresses, time_ns, is_sample);
    if (mark)
        *mark = stack_mark_of(in->process, is_sample, stack);
    return stack;
}

static enum thread_time_state state_of(const struct nettrace_sample *sample)
{
    return sample->payload.size ? (enum thread_time_state)sample->payload.data[0] : THREAD_TIME_UNKNOWN;
}

static void take_sample(struct nettrace_import *in, const struct nettrace_sample *sample)
{
    uint32_t thread = thread_of(in, sample->thread_id, sample->time_ns);
    if (thread && !in->options->part)
        thread_time_add(&in->wall, sample->time_ns, thread,
                        stack_of(in, sample->stack, sample->stack_mark, sample->time_ns, true),
                        state_of(sample));
}

/* A sample of a thread and of a stack that are known, like the thread's last one. False: it may be another.
 */
static inline bool sample_goes_on(struct nettrace_import *in, const struct nettrace_sample *sample)
{
    uint32_t thread = stream_threads_known(&in->threads, in->process, sample->thread_id);
    uint32_t stack = stack_mark_get(sample->stack_mark, in->process, true);
    return thread && stack &&
           thread_time_goes_on(&in->wall, sample->time_ns, thread, stack, state_of(sample));
}

/* A sample of CPU time, or the end of one, which only other readers need. */
static void take_kept_sample(struct nettrace_import *in, const struct nettrace_event *event)
{
    struct kept_sample sample;
    if (!kept_sample_read(event->payload, &sample)) {
        in->kept.malformed++;
        return;
    }
    if (sample.state != KEPT_STATE_SAMPLE)
        return;
    if (event->time_ns > in->last_ns)
        in->last_ns = event->time_ns;
    uint32_t thread = thread_of(in, event->thread_id, event->time_ns);
    if (!thread && !event->thread_id) /* of folded stacks, which know no threads */
        thread = trace_builder_thread(in->b, in->b->trace.processes.rows[in->process].pid, 0, event->time_ns);
    if (thread && !in->options->part)
        trace_push_sample(&in->b->trace.samples, event->time_ns, thread,
                          stack_of(in, event->stack, event->stack_mark, event->time_ns, true), sample.weight,
                          SAMPLE_CPU, (uint16_t)sample.cpu);
}

/* Whether an event is of the part that is read, and there is room for it. */
static bool part_takes(const struct trace *t, struct import_part *part, uint64_t time_ns)
{
    if (time_ns < part->from_ns || (part->to_ns && time_ns >= part->to_ns))
        return false;
    event_course_add(&part->course, 0, time_ns, 1);
    part->overflowed |= t->events.count > part->events_max;
    return !part->overflowed;
}

static void keep_event(struct nettrace_import *in, const struct imported_type *type,
                       const struct nettrace_event *event)
{
    struct import_part *part = in->options->part;
    if (part && !part_takes(&in->b->trace, part, event->time_ns))
        return;
    struct trace *t = &in->b->trace;
    uint32_t thread = thread_of(in, event->thread_id, event->time_ns);
    if (type->want == IMPORT_COLLECTIONS && !gc_stops_wants(&in->stops, type->kind, thread, event->payload))
        return;
    const struct trace_event row = {
        .time_ns = event->time_ns,
        .type = type->type,
        .process = in->process,
        .thread = thread,
        .stack = event->stack.size && in->process
                     ? stack_of(in, event->stack, event->stack_mark, event->time_ns, type->job == JOB_SAMPLE)
                     : 0,
    };
    struct span payload = type->want > IMPORT_EVENTS ? event->payload : (struct span){ 0 };
    bool kept = trace_push_event(t, &row, payload);
    if (!kept && part && payload.size <= TRACE_PAYLOAD_BYTES_MAX)
        part->overflowed = true;
    else if (!kept)
        in->no_room++;
    else if (event->activity.size || event->related_activity.size)
        trace_push_event_activity(t, event->activity, event->related_activity);
}

/* How many there are the reader says. */
static void count_when(struct nettrace_import *in, const struct imported_type *type, uint64_t time_ns)
{
    if (type->want == IMPORT_COUNTS)
        event_course_add(&in->b->trace.course, type->type, time_ns, 1);
}

static void on_times(void *user, const struct nettrace_type *type, uint64_t time_ns, uint64_t count)
{
    struct nettrace_import *in = user;
    event_course_add(&in->b->trace.course, in->types[type->mark].type, time_ns, count);
}

static uint64_t same_until(void *user, uint64_t time_ns)
{
    const struct nettrace_import *in = user;
    return event_course_same_until(&in->b->trace.course, time_ns);
}

/* Makes the process of this number the one whose events come. Of several an event may not say whose it is. */
static void turn_to(struct nettrace_import *in, uint64_t pid)
{
    if (pid == in->pid)
        return;
    bool known = pid <= UINT32_MAX && (pid || nettrace_reader_info(in->reader)->version < 6);
    in->pid = pid;
    in->process = known ? trace_builder_process_start(in->b, (uint32_t)pid, 0) : 0;
}

static void on_owner(void *user, const struct nettrace_type *type, uint64_t process_id)
{
    struct nettrace_import *in = user;
    turn_to(in, process_id);
    note_use(in, &in->types[type->mark]);
}

static void take_universal(struct nettrace_import *in, const struct imported_type *type,
                           const struct nettrace_event *event)
{
    enum universal_event kind = (enum universal_event)type->universal;
    if (kind != UNIVERSAL_CPU)
        universal_import_tell(&in->universal, kind, event);
    else if (!in->options->part)
        universal_import_sample(&in->universal, event, nettrace_reader_info(in->reader)->sampling_period_ns);
    if (kind == UNIVERSAL_PROCESS || kind == UNIVERSAL_EXIT)
        in->pid = UINT64_MAX; /* its number can be another process's now */
}

/* Apart from on_sample(), whose calls need none of its room. */
__attribute__((noinline)) static void take_other_sample(struct nettrace_import *in,
                                                        const struct nettrace_sample *sample)
{
    turn_to(in, sample->process_id);
    if (in->process)
        take_sample(in, sample);
}

static void on_sample(void *user, const struct nettrace_sample *sample)
{
    struct nettrace_import *in = user;
    if (sample->process_id != in->pid || !sample_goes_on(in, sample))
        take_other_sample(in, sample);
}

static bool on_event(void *user, const struct nettrace_event *event, struct error *err)
{
    struct nettrace_import *in = user;
    struct imported_type *type = &in->types[event->type->mark];
    (void)err;
    turn_to(in, event->process_id);
    note_use(in, type);
    if (!type->rundown && event->time_ns > in->last_ns && type->job != JOB_PROCESS_INFO)
        in->last_ns = event->time_ns;
    switch (in->process ? (enum type_job)type->job : JOB_NONE) {
    case JOB_SAMPLE:
        take_sample(in, &(struct nettrace_sample){ event->time_ns, event->process_id, event->thread_id,
                                                   event->stack, event->stack_mark, event->payload });
        break;
    case JOB_METHOD:
        nettrace_methods_tell(&in->methods, in->process, (enum runtime_event_kind)type->kind, type->verbose,
                              event->type->version, event->time_ns, event->payload);
        break;
    case JOB_MODULE:
        nettrace_methods_tell_module(&in->methods, in->b, in->process, event->type->version, event->payload);
        break;
    case JOB_PROCESS_INFO:
        process_facts_command(in->b, in->process, event->payload);
        break;
    case JOB_RUNTIME_INFO:
        process_facts_runtime(in->b, in->process, event->payload);
        break;
    case JOB_UNIVERSAL:
        take_universal(in, type, event);
        break;
    case JOB_KEPT_SAMPLE:
        take_kept_sample(in, event);
        break;
    case JOB_NONE:
        break;
    }
    if (type->want >= IMPORT_EVENTS)
        keep_event(in, type, event);
    else
        count_when(in, type, event->time_ns);
    return true;
}

/* The stream as a whole. */

static uint64_t realtime_ns(const struct nettrace_info *info)
{
    struct tm utc = {
        .tm_year = info->utc[0] - 1900,
        .tm_mon = info->utc[1] - 1,
        .tm_mday = info->utc[3],
        .tm_hour = info->utc[4],
        .tm_min = info->utc[5],
        .tm_sec = info->utc[6],
    };
    time_t seconds = info->utc[0] >= 1970 ? timegm(&utc) : 0;
    return seconds > 0 ? (uint64_t)seconds * 1000000000u + info->utc[7] * 1000000u : 0;
}

static bool on_info(void *user, const struct nettrace_info *info, struct error *err)
{
    struct nettrace_import *in = user;
    struct trace *t = &in->b->trace;
    (void)err;
    in->first_ns = in->last_ns = in->point_ns = info->sync_ns;
    turn_to(in, info->process_id);
    trace_set_fact(t, FACT_FORMAT, info->version < 4 ? "netperf" : "nettrace");
    trace_set_fact_number(t, FACT_STARTED_MONOTONIC_NS, in->first_ns);
    if (realtime_ns(info))
        trace_set_fact_number(t, FACT_STARTED_REALTIME_NS, realtime_ns(info));
    if (info->processors)
        trace_set_fact_number(t, FACT_CPUS, info->processors);
    return true;
}

/* The process that the stream is of; 0 when it is of several. */
static uint32_t stream_process(const struct nettrace_import *in)
{
    return trace_builder_process(in->b, nettrace_reader_info(in->reader)->process_id);
}

static bool on_thread(void *user, uint64_t process_id, uint64_t thread_id, struct span name,
                      struct error *err)
{
    struct nettrace_import *in = user;
    (void)err;
    if (process_id == 0 || process_id > UINT32_MAX || thread_id == 0 || thread_id > UINT32_MAX)
        return true;
    turn_to(in, process_id);
    trace_builder_thread_name(in->b, (uint32_t)process_id, (uint32_t)thread_id, name, 0);
    return true;
}

static void tell_loss(struct nettrace_import *in, uint64_t to_ns)
{
    if (in->lost)
        trace_builder_loss(in->b, LOSS_RUNTIME, stream_process(in), in->point_ns, to_ns, in->lost);
    in->lost = 0;
    in->point_ns = to_ns;
}

static bool on_sequence_point(void *user, uint64_t time_ns, struct error *err)
{
    (void)err;
    tell_loss(user, time_ns);
    return true;
}

static bool on_loss(void *user, uint64_t capture_thread_id, uint64_t count, struct error *err)
{
    struct nettrace_import *in = user;
    (void)capture_thread_id;
    (void)err;
    in->lost += count;
    return true;
}

static void add_gap(struct trace *t, uint64_t file_off, uint64_t size_bytes)
{
    if (t->gaps.count > GAPS_MAX)
        return;
    uint32_t id = trace_push(&t->gaps);
    t->gaps.rows[id] = (struct trace_gap){ file_off, size_bytes };
}

static bool on_damage(void *user, uint64_t stream_off, uint64_t size_bytes, const struct error *what,
                      struct error *err)
{
    struct nettrace_import *in = user;
    struct trace *t = &in->b->trace;
    (void)err;
    if (t->gaps.count == 1)
        import_note(t, "the block at byte %" PRIu64 " is damaged: %s", stream_off, what->what);
    add_gap(t, stream_off, size_bytes);
    trace_builder_loss(in->b, LOSS_MALFORMED, stream_process(in), in->last_ns, in->last_ns, 1);
    return true;
}

static void set_notes(struct nettrace_import *in)
{
    struct trace *t = &in->b->trace;
    const struct nettrace_counts *counts = nettrace_reader_counts(in->reader);
    if (counts->untyped)
        import_note(t, "%" PRIu64 " events were left out, as the file does not say what they are",
                    counts->untyped);
    uint64_t no_room =
        counts->limits + in->methods.refused + in->kept.refused + in->universal.refused + in->no_room;
    if (no_room)
        import_note(t, "%" PRIu64 " events, stacks or methods were left out: more than fit", no_room);
    if (counts->stackless)
        import_note(t, "%" PRIu64 " events are shown without their stacks, which the file does not hold",
                    counts->stackless);
    if (counts->time_breaks)
        import_note(t, "%" PRIu64 " times of events are not as the file promises: their order may be wrong",
                    counts->time_breaks);
    if (in->uses.cut)
        import_note(
            t, "what some processes were asked to tell is not known: more than %d providers of processes",
            PROVIDER_USES_MAX);
    if (in->methods.malformed)
        import_note(t, "%" PRIu64 " events about methods are malformed", in->methods.malformed);
    if (in->universal.malformed)
        import_note(t, "%" PRIu64 " events about processes, mappings and symbols are malformed",
                    in->universal.malformed);
    if (in->kept.malformed)
        import_note(t, "%" PRIu64 " of the rows that clrperf adds to a file are malformed",
                    in->kept.malformed);
}

/* What the reader counted, also of events that were not delivered. */
static void take_counts(struct nettrace_import *in)
{
    for (size_t i = 1; i < in->type_count; i++) {
        const struct imported_type *type = &in->types[i];
        if (!type->rundown && type->job != JOB_PROCESS_INFO && type->told->latest_ns > in->last_ns)
            in->last_ns = type->told->latest_ns;
        if (type->want != IMPORT_COUNTS)
            continue;
        struct trace_event_type *row = &in->b->trace.event_types.rows[type->type];
        row->counted += type->told->events;
        row->counted_with_stack += type->told->events_with_stack;
        row->counted_bytes += type->told->payload_bytes;
    }
}

/*
 * When the recording was over, which may be long after its last event: the runtime began to list its methods
 * or, where it did not, told for the last time how far each thread was.
 */
static uint64_t over_ns(const struct nettrace_import *in)
{
    uint64_t rundown_ns = 0;
    for (size_t i = 1; i < in->type_count; i++)
        if (in->types[i].kind == RUNTIME_EVENT_RUNDOWN_BEGIN && in->types[i].told->latest_ns > rundown_ns)
            rundown_ns = in->types[i].told->latest_ns;
    return rundown_ns ? rundown_ns : in->point_ns;
}

static void finish(struct nettrace_import *in)
{
    struct trace *t = &in->b->trace;
    take_counts(in);
    if (!in->kept.any && over_ns(in) > in->last_ns) /* our own files say how long it was, or nobody knows */
        in->last_ns = over_ns(in);
    tell_loss(in, in->last_ns);
    trace_set_fact_number(t, FACT_DURATION_NS, in->last_ns - in->first_ns);
    kept_import_finish(&in->kept, t);
    thread_time_finish(&in->wall, nettrace_reader_info(in->reader)->sampling_period_ns);
    if (t->subscriptions.count == 1) /* our own files say it */
        provider_uses_tell(&in->uses, t, in->first_ns, in->last_ns);
    universal_import_finish(&in->universal, nettrace_reader_info(in->reader)->sampling_period_ns);
    set_notes(in);
    nettrace_methods_name(&in->methods, in->kept.any, in->b);
    t->symbolized = !in->universal.samples; /* what the file does not name its images may */
    t->complete = nettrace_reader_ended(in->reader) && t->gaps.count == 1;
}

/* A runtime lists its methods when a recording ends, and says when it is through. */
static bool has_all_names(const struct nettrace_import *in)
{
    for (size_t i = 1; i < in->type_count; i++)
        if (in->types[i].kind == RUNTIME_EVENT_RUNDOWN_DONE && in->types[i].told->events)
            return true;
    return false;
}

/* Feeds the reader to the end of the file. What was read before damage stays. */
static bool read_all(struct nettrace_import *in, struct byte_stream *stream, struct error *err)
{
    struct error what;
    for (;;) {
        struct span there;
        size_t taken;
        if (!byte_stream_peek(stream, nettrace_reader_wanted(in->reader), &there, err))
            return false;
        if (there.size == 0)
            break;
        if (!nettrace_reader_take(in->reader, there, &taken, &what)) {
            if (!nettrace_reader_info(in->reader)) {
                if (err)
                    *err = what;
                return false;
            }
            uint64_t off = nettrace_reader_offset(in->reader);
            import_note(&in->b->trace, "reading ended at byte %" PRIu64 ": %s", off, what.what);
            add_gap(&in->b->trace, off, stream->pos + there.size - off);
            return true;
        }
        byte_stream_take(stream, taken);
    }
    if (!nettrace_reader_info(in->reader))
        return error_set(err, ERROR_INPUT, "it ends at byte %" PRIu64 ", before its first event",
                         stream->pos);
    if (!nettrace_reader_ended(in->reader))
        import_note(&in->b->trace, "the file is cut at byte %" PRIu64 ": everything before is shown%s",
                    stream->pos, has_all_names(in) ? "" : ", but most names come last and are missing");
    return true;
}

bool nettrace_import(struct byte_stream *stream, const struct import_options *options,
                     struct trace_builder *b, struct error *err)
{
    struct nettrace_import *in = mem_alloc(1, sizeof *in);
    struct nettrace_sink sink = {
        .user = in,
        .on_info = on_info,
        .on_type = on_type,
        .on_thread = on_thread,
        .on_event = on_event,
        .on_sample = on_sample,
        .on_owner = on_owner,
        .on_times = on_times,
        .same_until = same_until,
        .on_sequence_point = on_sequence_point,
        .on_loss = on_loss,
        .on_damage = on_damage,
    };
    in->b = b;
    in->pid = UINT64_MAX;
    in->options = options;
    in->universal.b = b;
    in->reader = nettrace_reader_new(&sink);
    nettrace_methods_init(&in->methods);
    thread_time_init(&in->wall, &b->trace, options->runs);
    buffer_init(&in->text, TEXT_MAX);
    bool ok = read_all(in, stream, err);
    if (ok)
        finish(in);
    nettrace_reader_free(in->reader);
    nettrace_methods_done(&in->methods);
    thread_time_done(&in->wall);
    gc_stops_done(&in->stops);
    universal_import_done(&in->universal);
    buffer_done(&in->text);
    free(in->types);
    provider_uses_done(&in->uses);
    free(in);
    return ok;
}
