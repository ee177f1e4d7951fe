#include "import/perf_script_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/module_name.h"
#include "import/import_note.h"
#include "import/other_events.h"
#include "read/perf_script.h"
#include "trace/facts.h"

enum {
    FRAMES_MAX = 1024,
    EVENTS_MAX = 16,       /* whose samples are kept until it is known which of them are shown */
    LINES_KNOWN = 1 << 16, /* a power of two */
};

/* What a frame's line became: most lines of a text are repeated thousands of times. */
struct known_line {
    uint64_t hash; /* of the whole line; equal hashes are taken for equal lines */
    uint32_t function;
    bool is_used;
};

struct script_event {
    struct buffer name;
    bool is_known; /* samples of it came, or it was asked for */
    bool has_period;
    uint64_t period; /* of the last sample */
    uint64_t samples;
};

struct script_import {
    struct trace_builder *b;
    const struct import_options *options;
    struct script_event events[EVENTS_MAX]; /* as they come in the text */
    size_t event;                           /* of the sample that is being read */
    bool in_sample, is_taken;               /* a sample is being read, and it is one of ours */
    bool has_frame_lines;         /* frames have lines of their own: then a blank one ends a sample */
    bool is_cut;                  /* the text ends in the middle of the sample */
    const char *cut;              /* what became of that, or NULL */
    bool may_idle;                /* it is of the task that runs when none does */
    struct perf_script_event now; /* its numbers; its spans are over */
    uint32_t frames[FRAMES_MAX];  /* functions, leaf first */
    size_t frame_count;
    uint32_t last_thread, last_comm; /* to name a thread only when its name changes */
    struct other_events others;
    uint64_t taken, of_idle_cpus, other_lines, without_pid, first_ns, last_ns;
    struct known_line *known; /* LINES_KNOWN of them, the last with its hash wins */
};

static bool has_text(struct span where, const char *what)
{
    return where.size && memmem(where.data, where.size, what, strlen(what));
}

static bool begins(struct span text, const char *with)
{
    size_t size = strlen(with);
    return text.size >= size && memcmp(text.data, with, size) == 0;
}

static bool ends(struct span text, const char *with)
{
    size_t size = strlen(with);
    return text.size >= size && memcmp(text.data + text.size - size, with, size) == 0;
}

static struct span file_name(struct span path)
{
    if (ends(path, " (deleted)"))
        path.size -= strlen(" (deleted)");
    const uint8_t *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
    size_t from = slash ? (size_t)(slash - path.data) + 1 : 0;
    return span_part(path, from, path.size - from);
}

static bool is_kernel(const struct perf_script_frame *f)
{
    /* modules stand in brackets too, other things in brackets are the user's */
    bool in_brackets = begins(f->dso, "[") && !begins(f->dso, "[vdso]") && !begins(f->dso, "[vsyscall]") &&
                       !begins(f->dso, "[unknown]") && !begins(f->dso, "[heap]") &&
                       !begins(f->dso, "[stack") && !begins(f->dso, "[anon") && !begins(f->dso, "[JIT]");
    return in_brackets || f->addr >> 63 || has_text(f->dso, "vmlinux") || has_text(f->dso, ".ko");
}

static enum code_kind kind_of(const struct perf_script_frame *f)
{
    static const char *const runtime[] = { "libcoreclr.so", "libclrjit",       "libclrgc",
                                           "libmono",       "libmscordaccore", "libclrinterpreter" };
    struct span name = file_name(f->dso);
    if (is_kernel(f))
        return CODE_KERNEL;
    if (f->dso.size == 0 || begins(f->dso, "[unknown]"))
        return CODE_UNKNOWN;
    if (begins(f->dso, "jitted/") || (begins(name, "perf-") && ends(name, ".map")) ||
        begins(name, "jitted-") || begins(f->dso, "[JIT]") || has_text(f->dso, "memfd:doublemapper") ||
        begins(f->dso, "//anon"))
        return CODE_JIT;
    if (ends(name, ".dll") || ends(name, ".exe"))
        return CODE_R2R;
    for (size_t i = 0; i < ARRAY_LEN(runtime); i++)
        if (begins(name, runtime[i]))
            return CODE_RUNTIME;
    return CODE_NATIVE;
}

static uint32_t module_of(struct script_import *in, struct span dso, enum code_kind kind)
{
    if (kind == CODE_KERNEL && begins(dso, "[kernel"))
        return trace_add_string(&in->b->trace, "[kernel]");
    if (begins(dso, "[unknown]") || begins(dso, "//anon"))
        return 0;
    struct span name = file_name(dso);
    if (kind == CODE_R2R || module_path_is_assembly(name)) /* these go by their assembly's name */
        name = module_simple_name(name);
    return intern_add(&in->b->trace.strings, name);
}

static void take_frame(struct script_import *in, const struct perf_script_frame *f)
{
    if (in->frame_count == FRAMES_MAX)
        return; /* more than the trace keeps anyway */
    struct perf_script_frame named = *f;
    if (f->name.size == 0)
        named.name = span_of("[unknown]", 9);
    /* an inlined function lives where the frame below it does, which comes on the next line */
    bool is_inlined = span_equals(f->dso, span_of("inlined", 7));
    if (is_inlined)
        named.dso = (struct span){ 0 };
    enum code_kind kind = is_inlined && !is_kernel(&named) ? CODE_NATIVE : kind_of(&named);
    struct trace_function function = {
        .name = intern_add(&in->b->trace.strings, named.name),
        .module = module_of(in, named.dso, kind),
        .kind = (uint8_t)kind,
    };
    in->frames[in->frame_count++] = trace_builder_function(in->b, &function);
}

/* A line that begins with a tab, within a sample of ours. */
static void take_frame_line(struct script_import *in, struct span line)
{
    uint64_t hash = hash_bytes(line.data, line.size);
    struct known_line *known = &in->known[hash & (LINES_KNOWN - 1)];
    struct perf_script_event e;
    struct perf_script_frame f;
    if (in->frame_count == FRAMES_MAX)
        return;
    if (known->is_used && known->hash == hash) {
        in->frames[in->frame_count++] = known->function;
        return;
    }
    if (perf_script_read_line(line, &e, &f) != PERF_SCRIPT_FRAME)
        return;
    take_frame(in, &f);
    *known = (struct known_line){ hash, in->frames[in->frame_count - 1], true };
}

/* "cpu-clock:HG", "cpu_core/cycles/": CPUs at work, not what else can be counted. */
static bool event_is_of_cpus(struct span event)
{
    static const char *const names[] = { "cpu-clock", "task-clock", "cycles",   "cpu-cycles",
                                         "cpu/",      "cpu_core/",  "cpu_atom/" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (begins(event, names[i]))
            return true;
    return false;
}

/* perf calls processes outside of its namespace like idle tasks, too: they run code of their own. */
static bool sample_is_idle(const struct script_import *in)
{
    bool is_kernel_only = true;
    for (size_t i = 0; i < in->frame_count; i++)
        is_kernel_only &= in->b->trace.functions.rows[in->frames[i]].kind == CODE_KERNEL;
    return in->may_idle && is_kernel_only;
}

static void finish_sample(struct script_import *in)
{
    if (!in->in_sample)
        return;
    in->in_sample = false;
    if (!in->is_taken)
        return;
    const struct perf_script_event *e = &in->now;
    if (in->taken + in->of_idle_cpus == 0)
        in->first_ns = e->time_ns;
    in->last_ns = e->time_ns;
    if (sample_is_idle(in)) {
        in->of_idle_cpus++;
        return;
    }
    in->taken++;
    uint32_t functions[TRACE_STACK_DEPTH_MAX + 1];
    size_t count = 0;
    /* the leaf's end is what counts; one more than fits tells the builder that the stack is cut */
    size_t kept = in->frame_count < ARRAY_LEN(functions) ? in->frame_count : ARRAY_LEN(functions);
    for (size_t i = kept; i-- > 0;)
        functions[count++] = in->frames[i];
    uint32_t stack =
        trace_builder_named_stack_to(in->b, functions, count, in->is_cut ? STACK_TRUNCATED : STACK_WHOLE);
    trace_push_sample(&in->b->trace.samples, e->time_ns, in->last_thread, stack,
                      e->has_period ? e->period : 1, (enum sample_kind)in->event /* see choose_events() */,
                      (uint16_t)e->cpu);
}

/* Which of those that are kept it is, or EVENTS_MAX. */
static size_t find_event(struct script_import *in, struct span name)
{
    size_t kept = in->options->event ? 1 : EVENTS_MAX;
    for (size_t i = 0; i < kept; i++) {
        struct script_event *event = &in->events[i];
        if (!event->is_known)
            buffer_append(&event->name, name.data, name.size);
        event->is_known = true;
        if (span_equals(name, buffer_span(&event->name)))
            return i;
    }
    return EVENTS_MAX;
}

static void take_event(struct script_import *in, const struct perf_script_event *e)
{
    finish_sample(in);
    in->in_sample = true;
    in->event = find_event(in, e->event);
    in->is_taken = in->event < EVENTS_MAX;
    in->frame_count = 0;
    if (!in->is_taken) {
        other_events_add(&in->others, e->event, 1);
        return;
    }
    in->now = *e;
    in->events[in->event].has_period = e->has_period;
    in->events[in->event].period = e->period;
    in->events[in->event].samples++;
    in->may_idle =
        !e->pid && !e->tid && span_equals(e->comm, span_of("swapper", 7)) && event_is_of_cpus(e->event);
    in->without_pid += !e->has_both_ids && e->tid;
    uint32_t comm = intern_add(&in->b->trace.strings, e->comm);
    uint32_t thread = trace_builder_thread(in->b, e->pid, e->tid, e->time_ns);
    if (thread != in->last_thread || comm != in->last_comm) {
        struct trace *t = &in->b->trace;
        if (t->threads.rows[thread].name != comm)
            trace_builder_thread_name(in->b, e->pid, e->tid, e->comm, e->time_ns);
        struct trace_process *process = &t->processes.rows[t->threads.rows[thread].process];
        if (!process->name || e->pid == e->tid)
            process->name = comm;
    }
    in->last_thread = thread;
    in->last_comm = comm;
    if (e->has_frame)
        take_frame(in, &e->frame);
}

/* "# hostname : vm" */
static void take_comment(struct script_import *in, struct span line)
{
    static const struct {
        const char *text, *key;
    } headers[] = {
        { "# hostname : ", FACT_HOST },
        { "# os release : ", FACT_KERNEL },
        { "# arch : ", FACT_ARCH },
        { "# cpudesc : ", FACT_CPU },
        { "# cmdline : ", FACT_COMMAND_LINE },
        { "# nrcpus online : ", FACT_CPUS },
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        if (!begins(line, headers[i].text))
            continue;
        size_t from = strlen(headers[i].text);
        AUTO_FREE char *value = mem_format("%.*s", (int)(line.size - from), (const char *)line.data + from);
        trace_set_fact(&in->b->trace, headers[i].key, value);
    }
}

static void take_line(struct script_import *in, struct span line)
{
    struct perf_script_event e;
    struct perf_script_frame f;
    if (in->in_sample && in->is_taken && line.size && line.data[0] == '\t') {
        in->has_frame_lines = true;
        take_frame_line(in, line);
        return;
    }
    switch (perf_script_read_line(line, &e, &f)) {
    case PERF_SCRIPT_BLANK:
        finish_sample(in);
        break;
    case PERF_SCRIPT_COMMENT:
        take_comment(in, line);
        break;
    case PERF_SCRIPT_EVENT:
        take_event(in, &e);
        break;
    case PERF_SCRIPT_FRAME:
        in->has_frame_lines |= in->in_sample;
        if (in->in_sample && in->is_taken)
            take_frame(in, &f);
        else if (!in->in_sample)
            in->other_lines++;
        break;
    case PERF_SCRIPT_RECORD:
        finish_sample(in);
        if (e.lost)
            trace_builder_loss(in->b, LOSS_RING, 0, in->now.has_time ? in->now.time_ns : e.time_ns, e.time_ns,
                               e.lost);
        break;
    case PERF_SCRIPT_OTHER:
        /* below a frame: its source line */
        in->other_lines += !in->in_sample;
        break;
    }
}

/* Whether the frame at its end was written to its end: "... name+0x12 (/memfd:doublemapper (deleted))". */
static bool frame_is_whole(struct span line)
{
    size_t opened = 0, closed = 0;
    for (size_t i = 0; i < line.size; i++) {
        opened += line.data[i] == '(';
        closed += line.data[i] == ')';
    }
    return opened == closed && ends(line, ")");
}

/* A line that the end of the text cut, or may have. */
static void take_open_line(struct script_import *in, struct span line)
{
    struct perf_script_event e;
    struct perf_script_frame f;
    enum perf_script_line kind = perf_script_read_line(line, &e, &f);
    if (frame_is_whole(line) && (kind == PERF_SCRIPT_FRAME || (kind == PERF_SCRIPT_EVENT && e.has_frame))) {
        take_line(in, line);
        return;
    }
    if (kind == PERF_SCRIPT_EVENT) {
        finish_sample(in);
        in->cut = "the last sample is left out";
    } else if (kind != PERF_SCRIPT_BLANK) {
        in->cut = "the last line is left out";
    }
}

/* The blank line behind the last sample may be missing (editors take it away), its frames may not. */
static void finish_text(struct script_import *in)
{
    if (in->in_sample && in->has_frame_lines) {
        in->is_cut = in->cut != NULL;
        if (in->is_cut)
            in->cut = "callers may be missing in the last stack";
        if (in->is_taken && in->frame_count == 0) {
            in->is_taken = false;
            in->cut = "the last sample is left out";
        }
    }
    finish_sample(in);
}

static void move_sample(struct trace_samples *samples, size_t to, size_t from)
{
    samples->time_ns[to] = samples->time_ns[from];
    samples->weight[to] = samples->weight[from];
    samples->thread[to] = samples->thread[from];
    samples->stack[to] = samples->stack[from];
    samples->cpu[to] = samples->cpu[from];
}

/* So far the kind of a sample is the place of its event. */
static void keep_samples(struct trace_samples *samples, size_t shown, size_t counted)
{
    size_t kept = 0;
    for (size_t i = 0; i < samples->count; i++) {
        size_t event = samples->kind[i];
        if (event != shown && event != counted)
            continue;
        move_sample(samples, kept, i);
        samples->kind[kept++] = event == shown ? SAMPLE_CPU : SAMPLE_EVENT;
    }
    samples->count = kept;
}

/* Where CPUs were at work is shown, wherever in the text that comes first, and the first other event is kept,
 * too. */
static void choose_events(struct script_import *in, size_t *out_shown, size_t *out_counted)
{
    size_t shown = 0, counted = 0;
    while (shown < EVENTS_MAX && !event_is_of_cpus(buffer_span(&in->events[shown].name)))
        shown++;
    if (shown == EVENTS_MAX)
        shown = 0;
    counted = shown == 0;
    for (size_t i = 0; i < EVENTS_MAX; i++)
        if (i != shown && i != counted)
            other_events_add(&in->others, buffer_span(&in->events[i].name), in->events[i].samples);
    keep_samples(&in->b->trace.samples, shown, counted);
    *out_shown = shown;
    *out_counted = counted;
}

static char *event_name(const struct script_event *event)
{
    struct span name = buffer_span(&event->name);
    return mem_format("%.*s", (int)name.size, name.size ? (const char *)name.data : "");
}

static void set_event_facts(struct script_import *in)
{
    struct trace *t = &in->b->trace;
    size_t shown_event, counted_event;
    choose_events(in, &shown_event, &counted_event);
    const struct script_event *shown = &in->events[shown_event];
    struct span event = buffer_span(&shown->name);
    AUTO_FREE char *name = event_name(shown);
    AUTO_FREE char *counted = event_name(&in->events[counted_event]);
    bool is_clock = begins(event, "cpu-clock") || begins(event, "task-clock");
    if (name[0])
        trace_set_fact(t, FACT_EVENT, name);
    if (counted[0])
        trace_set_fact(t, FACT_COUNTED_EVENT, counted);
    trace_set_fact(t, FACT_UNIT, !shown->has_period ? "samples" : is_clock ? "ns" : "count");
    if (is_clock && shown->has_period && shown->period)
        trace_set_fact_number(t, FACT_RATE_HZ, (1000000000 + shown->period / 2) / shown->period);
    other_events_tell(&in->others, name, t);
}

static void set_facts(struct script_import *in)
{
    struct trace *t = &in->b->trace;
    trace_set_fact(t, FACT_FORMAT, "perf script");
    trace_set_fact(t, FACT_TOOL, "perf");
    set_event_facts(in);
    if (in->first_ns)
        trace_set_fact_number(t, FACT_STARTED_MONOTONIC_NS, in->first_ns);
    if (in->of_idle_cpus && in->last_ns > in->first_ns) /* what is left out at the ends was recorded, too */
        trace_set_fact_number(t, FACT_DURATION_NS, in->last_ns - in->first_ns);
    if (in->of_idle_cpus)
        import_note(t, "samples of idle CPUs are left out: %" PRIu64, in->of_idle_cpus);
    if (in->without_pid)
        import_note(t,
                    "the text says only the thread of %" PRIu64 " samples: each is shown as a process of its "
                    "own (print both with 'perf script -F +pid')",
                    in->without_pid);
    if (in->other_lines) {
        import_note(t, "%" PRIu64 " lines are not of perf script", in->other_lines);
        trace_builder_loss(in->b, LOSS_MALFORMED, 0, 0, 0, in->other_lines);
    }
    if (in->cut)
        import_note(t, "the text ends in the middle: %s", in->cut);
    t->symbolized = true;
    t->complete = !in->cut;
}

/* All frames without a name share one location. */
static void mark_nameless(struct trace *t)
{
    for (size_t i = 1; i < t->locations.count; i++) {
        if (t->locations.rows[i].function)
            continue;
        t->locations.rows[i].resolver = RESOLVER_NONE;
        t->locations.rows[i].unnamed = UNNAMED_NO_SYMBOL;
    }
}

static bool read_lines(struct script_import *in, struct byte_stream *stream, struct error *err)
{
    for (;;) {
        struct span line;
        bool any;
        if (!byte_stream_line(stream, &line, &any, err))
            return false;
        if (!any)
            break;
        if (stream->line_is_open)
            take_open_line(in, line);
        else
            take_line(in, line);
    }
    finish_text(in);
    if (in->taken + in->of_idle_cpus == 0 && in->options->event) {
        error_set(err, ERROR_USAGE, "there is no event '%s'", in->options->event);
        return error_hint(err, "leave the event out to get the first one");
    }
    return true;
}

static void events_init(struct script_import *in)
{
    enum { NAME_BYTES_MAX = 4096 };
    for (size_t i = 0; i < EVENTS_MAX; i++)
        buffer_init(&in->events[i].name, NAME_BYTES_MAX);
    if (in->options->event)
        buffer_string(&in->events[0].name, in->options->event);
    in->events[0].is_known = in->options->event;
    other_events_init(&in->others);
}

static void events_done(struct script_import *in)
{
    for (size_t i = 0; i < EVENTS_MAX; i++)
        buffer_done(&in->events[i].name);
    other_events_done(&in->others);
}

bool perf_script_import(struct byte_stream *stream, const struct import_options *options,
                        struct trace_builder *b, struct error *err)
{
    struct script_import *in = mem_alloc(1, sizeof *in);
    in->b = b;
    in->options = options;
    in->known = mem_alloc(LINES_KNOWN, sizeof *in->known);
    events_init(in);
    bool ok = read_lines(in, stream, err);
    if (ok) {
        set_facts(in);
        mark_nameless(&b->trace);
    }
    events_done(in);
    free(in->known);
    free(in);
    return ok;
}
