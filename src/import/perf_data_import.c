#include "import/perf_data_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/own.h"
#include "import/import_note.h"
#include "import/mapped_files.h"
#include "import/other_events.h"
#include "read/perf_data.h"
#include "trace/facts.h"

enum {
    CHAIN_MAX = 1024,
    THROTTLES_OPEN_MAX = 256,
    WAITING_CHAIN_MAX = 256,
    /* the perf tool made this FORK up for a process that ran before */
    MISC_FORK_EXEC = 1 << 13,
    MISC_CPUMODE = 7,
    /* the kernel's own bound when the event does not set another, markers included */
    KERNEL_CHAIN_MAX = 127,
    NO_EVENT = UINT32_MAX,
    REG_X86_SP = 7,
    REG_X86_IP = 8,
};

struct open_throttle {
    uint64_t id, from_ns;
};

/* Samples whose stacks are on their way from memory. Their chains lie in the file's records until those are
 * settled. */
struct waiting_samples {
    size_t count;
    struct perf_sample samples[STACK_PATHS_MAX];
    struct raw_sample raws[STACK_PATHS_MAX];
    uint64_t chains[STACK_PATHS_MAX][WAITING_CHAIN_MAX];
};

struct data_import {
    struct trace_builder *b;
    struct perf_data data;
    const struct import_options *options;
    uint32_t event;   /* whose samples are taken; NO_EVENT until known */
    uint32_t counted; /* of another, which are SAMPLE_EVENT; NO_EVENT when there is none */
    struct other_events others;
    uint64_t samples, of_idle_cpus, without_user_chain;
    uint64_t newest_ns, first_sample_ns, last_sample_ns;
    uint64_t lost, lost_in_all; /* as records told one by one, and as perf counted at its end */
    struct root_images roots;
    struct open_throttle throttles[THROTTLES_OPEN_MAX];
    size_t throttle_count;
    uint64_t chain[CHAIN_MAX];
    struct waiting_samples waiting;
    void *unwinder; /* of options->unwinder, or NULL */
    bool unwinder_tried;
    bool ran_outside; /* user code of pid 0: of a process that has no number in the recorder's namespace */
};

/* Events. */

static bool event_is_clock(const struct perf_event_info *info)
{
    return info->attr.type == PERF_TYPE_SOFTWARE &&
           (info->attr.config == PERF_COUNT_SW_CPU_CLOCK || info->attr.config == PERF_COUNT_SW_TASK_CLOCK);
}

/* Its samples say that a CPU was at work: not those of switches, faults or tracepoints. */
static bool event_is_of_cpus(const struct perf_event_info *info)
{
    uint32_t type = info->attr.type;
    return event_is_clock(info) ||
           (type != PERF_TYPE_SOFTWARE && type != PERF_TYPE_TRACEPOINT && type != PERF_TYPE_BREAKPOINT);
}

static uint32_t find_event(const struct perf_header *h, const char *name)
{
    for (uint32_t i = 0; i < h->event_count; i++)
        if (strcmp(h->events[i].name, name) == 0)
            return i;
    return NO_EVENT;
}

/* Stacks say most, then where CPUs were at work; of equals the first. */
static uint32_t find_best_event(const struct perf_header *h)
{
    uint32_t best = 0;
    unsigned best_rank = 0;
    for (uint32_t i = 0; i < h->event_count; i++) {
        const struct perf_event_info *info = &h->events[i];
        bool has_stacks = info->attr.sample_type & PERF_SAMPLE_CALLCHAIN;
        unsigned rank = 2u * has_stacks + event_is_of_cpus(info);
        if (rank > best_rank) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

/* In a pipe the events come as records, so this may have to wait for the first sample. */
static bool choose_event(struct data_import *in, struct error *err)
{
    const struct perf_header *h = &in->data.header;
    const char *name = in->options->event;
    uint32_t event = name ? find_event(h, name) : find_best_event(h);
    if (event == NO_EVENT) {
        error_set(err, ERROR_USAGE, "there is no event '%s'", name);
        return error_hint(err, "the first event is '%s'", h->event_count ? h->events[0].name : "");
    }
    if (event >= h->event_count)
        return error_set(err, ERROR_INPUT, "perf.data has samples and says of no event");
    in->event = event;
    return true;
}

/* The first other event of which there are samples is kept, too. */
static bool event_is_counted(struct data_import *in, uint32_t event)
{
    const struct perf_event_info *events = in->data.header.events;
    if (in->counted == NO_EVENT && !in->options->event &&
        /* an unwinder knows one set of registers */
        events[event].attr.sample_regs_user == events[in->event].attr.sample_regs_user)
        in->counted = event;
    return event == in->counted;
}

static const struct perf_event_info *event_of(const struct data_import *in, enum sample_kind kind)
{
    return &in->data.header.events[kind == SAMPLE_EVENT ? in->counted : in->event];
}

/* Of a sample without a period. */
static uint64_t event_weight(const struct perf_event_info *info)
{
    uint64_t weight = 0;
    if (!info->attr.freq)
        weight = info->attr.sample_period;
    else if (event_is_clock(info) && info->attr.sample_freq)
        weight = 1000000000 / info->attr.sample_freq;
    return weight ? weight : 1;
}

/* Mappings. */

static uint32_t build_id_of(struct data_import *in, struct span path, struct span inlined)
{
    char hex[41] = "";
    const char *text = hex;
    for (size_t i = 0; i < inlined.size && i < 20; i++)
        snprintf(hex + 2 * i, 3, "%02x", inlined.data[i]);
    for (size_t i = 0; !hex[0] && i < in->data.header.build_id_count; i++) {
        const struct perf_build_id *row = &in->data.header.build_ids[i];
        if (strlen(row->path) == path.size && memcmp(row->path, path.data, path.size) == 0) {
            text = row->hex;
            break;
        }
    }
    return trace_add_string(&in->b->trace, text);
}

static void take_mmap(struct data_import *in, const struct perf_record *r)
{
    const struct perf_mmap *m = &r->mmap;
    bool is_kernel = (r->misc & MISC_CPUMODE) != PERF_RECORD_MISC_USER || m->pid == UINT32_MAX;
    if (is_kernel || !(m->prot & PROT_EXEC) || m->size_bytes == 0)
        return;
    size_t images = in->b->trace.images.count;
    uint32_t process = trace_builder_process_start(in->b, m->pid, r->who.time_ns);
    uint32_t image =
        trace_builder_image(in->b, m->path, mapped_file_kind(m->path), m->major, m->minor, m->inode);
    if (in->b->trace.images.count > images)
        in->b->trace.images.rows[image].build_id = build_id_of(in, m->path, m->build_id);
    trace_builder_mapping(in->b, process, m->addr, m->size_bytes, m->file_off, image, r->who.time_ns);
    if (in->unwinder)
        in->options->unwinder->mapped(in->unwinder, process, m->addr);
}

/* Tasks. */

static void take_comm(struct data_import *in, const struct perf_record *r)
{
    uint32_t pid = r->comm.pid, tid = r->comm.tid;
    uint64_t time_ns = r->who.time_ns;
    if (r->comm.is_exec)
        trace_builder_process_exec(in->b, pid, r->comm.name, time_ns);
    trace_builder_thread_name(in->b, pid, tid, r->comm.name, time_ns);
    struct trace_process *process = &in->b->trace.processes.rows[trace_builder_process(in->b, pid)];
    if (pid == tid && !process->name)
        process->name = intern_add(&in->b->trace.strings, r->comm.name);
}

static void take_fork(struct data_import *in, const struct perf_record *r)
{
    const struct perf_task *t = &r->task;
    if (t->pid == t->ppid)
        trace_builder_thread_start(in->b, t->pid, t->tid, t->time_ns);
    else if (r->misc & MISC_FORK_EXEC)
        trace_builder_process_start(in->b, t->pid, t->time_ns);
    else
        trace_builder_process_fork(in->b, t->ppid, t->pid, t->time_ns);
    trace_builder_thread(in->b, t->pid, t->tid, t->time_ns);
}

static void take_exit(struct data_import *in, const struct perf_task *t)
{
    trace_builder_thread_exit(in->b, t->pid, t->tid, t->time_ns);
    if (t->pid == t->tid)
        trace_builder_process_exit(in->b, t->pid, t->time_ns);
}

/* The kernel tells the name of no idle task. perf calls them all like this; in a container it means processes
 * outside, too, which run code of their own. */
static void name_idle_tasks(struct data_import *in)
{
    static const char name[] = "swapper";
    struct trace *t = &in->b->trace;
    uint32_t process = trace_builder_process(in->b, 0);
    uint32_t thread = trace_builder_find_thread(in->b, process, 0);
    if (!process || in->ran_outside || t->processes.rows[process].name)
        return;
    t->processes.rows[process].name = trace_add_string(t, name);
    if (thread && !t->threads.rows[thread].name)
        t->threads.rows[thread].name = t->processes.rows[process].name;
}

/* Facts. */

static void set_text(struct trace *t, const char *key, const char *value)
{
    if (value[0])
        trace_set_fact(t, key, value);
}

static void set_event_facts(struct data_import *in)
{
    struct trace *t = &in->b->trace;
    if (in->event == NO_EVENT && !choose_event(in, NULL))
        return;
    const struct perf_event_info *info = &in->data.header.events[in->event];
    trace_set_fact(t, FACT_EVENT, info->name);
    trace_set_fact(t, FACT_UNIT, event_is_clock(info) ? "ns" : "count");
    trace_set_fact(t, FACT_KERNEL_FRAMES, info->attr.exclude_kernel ? "no" : "yes");
    if (info->attr.freq)
        trace_set_fact_number(t, FACT_RATE_HZ, info->attr.sample_freq);
    else if (event_is_clock(info) && info->attr.sample_period)
        trace_set_fact_number(t, FACT_RATE_HZ, 1000000000 / info->attr.sample_period);
    if (in->counted != NO_EVENT)
        trace_set_fact(t, FACT_COUNTED_EVENT, event_of(in, SAMPLE_EVENT)->name);
}

static void set_facts(struct data_import *in)
{
    struct trace *t = &in->b->trace;
    const struct perf_header *h = &in->data.header;
    AUTO_FREE char *tool = mem_format("perf %s", h->tool_version);
    trace_set_fact(t, FACT_FORMAT, "perf.data");
    trace_set_fact(t, FACT_TOOL, h->tool_version[0] ? tool : "perf");
    set_text(t, FACT_HOST, h->hostname);
    set_text(t, FACT_KERNEL, h->os_release);
    set_text(t, FACT_ARCH, h->arch);
    set_text(t, FACT_CPU, h->cpu);
    set_text(t, FACT_COMMAND_LINE, h->command_line);
    if (h->cpus_online)
        trace_set_fact_number(t, FACT_CPUS, h->cpus_online);
    set_event_facts(in);
    uint64_t first_ns = h->first_ns ? h->first_ns : in->first_sample_ns;
    if (first_ns)
        trace_set_fact_number(t, FACT_STARTED_MONOTONIC_NS, first_ns);
    /* what is left out at the ends was recorded, too */
    if (first_ns && in->of_idle_cpus && in->last_sample_ns > first_ns)
        trace_set_fact_number(t, FACT_DURATION_NS, in->last_sample_ns - first_ns);
    if (h->has_clock_id && first_ns)
        trace_set_fact_number(t, FACT_STARTED_REALTIME_NS, h->wall_ns + (first_ns - h->wall_mono_ns));
}

/* Samples. */

static enum stack_end end_of(struct data_import *in, const struct perf_sample *s,
                             const struct perf_callchain *chain)
{
    if (chain->is_cut || chain->is_user_deferred || s->callchain.size / 8 >= KERNEL_CHAIN_MAX)
        return STACK_TRUNCATED;
    if (chain->user_count == 0)
        return chain->kernel_count ? STACK_WHOLE : STACK_BROKEN;
    uint32_t process = trace_builder_process(in->b, s->who.pid);
    uint64_t root = chain->user[chain->user_count - 1];
    return root_images_have(&in->roots, in->b, process, root) ? STACK_WHOLE : STACK_BROKEN;
}

/* `--call-graph dwarf` leaves the user's frames to the reader. */
static bool unwind(struct data_import *in, const struct perf_sample *s, const struct perf_callchain *chain,
                   struct raw_sample *raw)
{
    const struct perf_header *h = &in->data.header;
    const struct import_unwinder *unwinder = in->options->unwinder;
    if (!unwinder || !s->user_stack.size || s->user_abi != PERF_SAMPLE_REGS_ABI_64)
        return false;
    if (!in->unwinder_tried) {
        struct import_machine machine = { h->arch, h->os_release,
                                          h->events[in->event].attr.sample_regs_user };
        in->unwinder_tried = true;
        set_facts(in); /* when and where it was made says which processes may still run */
        in->unwinder = unwinder->open(in->b, &machine);
    }
    uint32_t process = trace_builder_process_start(in->b, s->who.pid, s->who.time_ns);
    raw->kernel = chain->kernel;
    raw->kernel_count = chain->kernel_count;
    return in->unwinder && unwinder->run(in->unwinder, process, s, raw);
}

/* What is known without unwinding is the first. */
static uint64_t user_ip(const struct perf_event_attr *attr, const struct perf_sample *s)
{
    uint64_t below = attr->sample_regs_user & ((1ull << REG_X86_IP) - 1);
    size_t at = 8 * (size_t)__builtin_popcountll(below);
    bool there = attr->sample_regs_user >> REG_X86_IP & 1 && at + 8 <= s->user_regs.size;
    return there ? load_u64le(s->user_regs.data + at) : 0;
}

/* The frames of a chain that was not seen before, in `words`. */
static void find_frames(struct data_import *in, const struct perf_sample *s, struct raw_sample *raw,
                        uint64_t *words, size_t words_max)
{
    const struct perf_event_attr *attr = &event_of(in, raw->kind)->attr;
    struct perf_callchain chain = perf_callchain_split(s->callchain, words, words_max);
    enum stack_end end = 0;
    uint64_t lone;
    if (chain.user_count == 0 && attr->sample_regs_user && unwind(in, s, &chain, raw))
        return;
    if (chain.user_count == 0 && attr->sample_regs_user && (lone = user_ip(attr, s)) != 0) {
        chain.user_count = chain.kernel_count < words_max;
        if (chain.user_count)
            words[chain.kernel_count] = lone;
        in->without_user_chain++;
        end = STACK_TRUNCATED;
    } else if (chain.kernel_count + chain.user_count == 0 && s->ip) {
        words[0] = s->ip;
        chain.kernel_count = s->ip >> 63;
        chain.user_count = 1 - chain.kernel_count;
        chain.user = words + chain.kernel_count;
        end = STACK_TRUNCATED;
    }
    if (end) { /* made of more than the chain */
        raw->chain = (struct span){ 0 };
        raw->looked_at = false;
    }
    raw->kernel = chain.kernel;
    raw->user = chain.user;
    raw->kernel_count = chain.kernel_count;
    raw->user_count = chain.user_count;
    raw->end = end ? end : end_of(in, s, &chain);
}

static void take_waiting(void *user)
{
    struct data_import *in = user;
    struct waiting_samples *w = &in->waiting;
    for (size_t i = 0; i < w->count; i++)
        if (!trace_builder_sample_is_known(in->b, &w->raws[i]))
            find_frames(in, &w->samples[i], &w->raws[i], w->chains[i], WAITING_CHAIN_MAX);
    trace_builder_samples(in->b, w->raws, w->count);
    w->count = 0;
}

/* Puts the sample off by a few others, so that nothing stands still while its stack is looked up. */
static void take_later(struct data_import *in, const struct perf_sample *s, const struct raw_sample *raw)
{
    struct waiting_samples *w = &in->waiting;
    if (w->count == STACK_PATHS_MAX)
        take_waiting(in);
    w->raws[w->count] = *raw;
    struct perf_sample *kept = &w->samples[w->count];
    kept->who = s->who;
    kept->ip = s->ip;
    kept->callchain = s->callchain; /* all that a chain without registers needs: the rest stays zero */
    trace_builder_sample_expect(in->b, &w->raws[w->count++]);
}

static bool chain_has_user_code(struct span words)
{
    for (size_t at = 0; at + 8 <= words.size; at += 8)
        if (load_u64le(words.data + at) == (uint64_t)PERF_CONTEXT_USER)
            return true;
    return false;
}

/* An idle CPU's: our own recordings leave them out, too (exclude_idle). */
static bool sample_is_idle(struct data_import *in, const struct perf_event_info *info,
                           const struct perf_record *r)
{
    const struct perf_sample *s = &r->sample;
    if (s->who.pid || s->who.tid || !(info->attr.sample_type & PERF_SAMPLE_TID))
        return false;
    bool is_outside = (r->misc & MISC_CPUMODE) == PERF_RECORD_MISC_USER || s->user_regs.size ||
                      chain_has_user_code(s->callchain);
    in->ran_outside |= is_outside;
    return !is_outside && event_is_of_cpus(info);
}

static void take_sample(struct data_import *in, const struct perf_record *r, enum sample_kind kind)
{
    const struct perf_sample *s = &r->sample;
    const struct perf_event_info *info = event_of(in, kind);
    const struct perf_event_attr *attr = &info->attr;
    bool has_period = attr->sample_type & PERF_SAMPLE_PERIOD;
    struct raw_sample raw = {
        .time_ns = s->who.time_ns,
        .weight = has_period ? s->period : event_weight(info),
        .chain = attr->sample_regs_user ? (struct span){ 0 } : s->callchain,
        .pid = s->who.pid,
        .tid = s->who.tid,
        .cpu = (uint16_t)s->who.cpu,
        .kind = kind,
    };
    if (in->samples++ == 0)
        in->first_sample_ns = s->who.time_ns;
    in->last_sample_ns = s->who.time_ns;
    if (sample_is_idle(in, info, r)) {
        in->of_idle_cpus++;
        return;
    }
    if (raw.chain.size && raw.chain.size <= sizeof in->waiting.chains[0]) {
        take_later(in, s, &raw);
        return;
    }
    take_waiting(in);
    if (!raw.chain.size || !trace_builder_sample_is_known(in->b, &raw))
        find_frames(in, s, &raw, in->chain, CHAIN_MAX);
    trace_builder_sample(in->b, &raw);
}

/* Losses. */

static void take_throttle(struct data_import *in, const struct perf_record *r)
{
    size_t i = 0;
    while (i < in->throttle_count && in->throttles[i].id != r->throttle.stream_id)
        i++;
    if (r->type == PERF_RECORD_THROTTLE) {
        if (i == in->throttle_count && i < THROTTLES_OPEN_MAX)
            in->throttles[in->throttle_count++] =
                (struct open_throttle){ r->throttle.stream_id, r->throttle.time_ns };
        return;
    }
    uint64_t from_ns = i < in->throttle_count ? in->throttles[i].from_ns : r->throttle.time_ns;
    trace_builder_loss(in->b, LOSS_THROTTLED, 0, from_ns, r->throttle.time_ns, 1);
    if (i < in->throttle_count)
        in->throttles[i] = in->throttles[--in->throttle_count];
}

static void take_lost(struct data_import *in, const struct perf_record *r, uint64_t before_ns)
{
    if (r->lost.is_sum) {
        in->lost_in_all += r->lost.count;
        return;
    }
    in->lost += r->lost.count;
    trace_builder_loss(in->b, LOSS_RING, 0, before_ns, r->who.time_ns, r->lost.count);
}

static bool take_any_sample(struct data_import *in, uint32_t event, const struct perf_record *r,
                            struct error *err)
{
    if (in->event == NO_EVENT && !choose_event(in, err))
        return false;
    const char *name = in->data.header.events[event].name;
    if (event == in->event)
        take_sample(in, r, SAMPLE_CPU);
    else if (event_is_counted(in, event))
        take_sample(in, r, SAMPLE_EVENT);
    else
        other_events_add(&in->others, span_of(name, strlen(name)), 1);
    return true;
}

static bool take_record(void *user, uint32_t event, const struct perf_record *r, struct error *err)
{
    struct data_import *in = user;
    uint64_t before_ns = in->newest_ns;
    if (r->who.time_ns > in->newest_ns && r->who.time_ns != UINT64_MAX)
        in->newest_ns = r->who.time_ns;
    if (r->type != PERF_RECORD_SAMPLE)
        take_waiting(in);
    switch (r->type) {
    case PERF_RECORD_SAMPLE:
        return take_any_sample(in, event, r, err);
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        take_mmap(in, r);
        break;
    case PERF_RECORD_COMM:
        take_comm(in, r);
        break;
    case PERF_RECORD_FORK:
        take_fork(in, r);
        break;
    case PERF_RECORD_EXIT:
        take_exit(in, &r->task);
        break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        take_lost(in, r, before_ns);
        break;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
        take_throttle(in, r);
        break;
    default:
        break;
    }
    return true;
}

/* Notes and losses. */

static void set_notes(struct data_import *in)
{
    struct trace *t = &in->b->trace;
    const struct perf_data_stats *stats = &in->data.stats;
    if (stats->is_unfinished)
        import_note(t,
                    "the recorder was killed before it closed the file: %" PRIu64 " whole records were read",
                    stats->records);
    else if (stats->is_cut)
        import_note(t, "the file is cut: %" PRIu64 " whole records were read", stats->records);
    if (stats->damage[0])
        import_note(t, "reading ended at byte %" PRIu64 ": %s", stats->damage_off, stats->damage);
    if (in->event != NO_EVENT)
        other_events_tell(&in->others, event_of(in, SAMPLE_CPU)->name, t);
    if (in->of_idle_cpus)
        import_note(t, "samples of idle CPUs are left out: %" PRIu64, in->of_idle_cpus);
    if (in->without_user_chain)
        import_note(t,
                    "%" PRIu64 " samples carry registers instead of a callchain; of those only the "
                    "innermost user frame was taken",
                    in->without_user_chain);
    if (stats->late)
        import_note(t, "%" PRIu64 " records are out of order", stats->late);
}

static void set_losses(struct data_import *in)
{
    struct trace *t = &in->b->trace;
    const struct perf_data_stats *stats = &in->data.stats;
    for (size_t i = 0; i < in->throttle_count; i++)
        trace_builder_loss(in->b, LOSS_THROTTLED, 0, in->throttles[i].from_ns, in->newest_ns, 1);
    if (in->lost_in_all > in->lost)
        trace_builder_loss(in->b, LOSS_RING, 0, in->newest_ns, in->newest_ns, in->lost_in_all - in->lost);
    if (stats->malformed)
        trace_builder_loss(in->b, LOSS_MALFORMED, 0, 0, 0, stats->malformed);
    if (stats->damage_bytes) {
        uint32_t id = trace_push(&t->gaps);
        t->gaps.rows[id] = (struct trace_gap){ stats->damage_off, stats->damage_bytes };
    }
    t->complete = !stats->is_unfinished && !stats->is_cut && !stats->damage[0];
}

bool perf_data_import(struct byte_stream *stream, const struct import_options *options,
                      struct trace_builder *b, struct error *err)
{
    struct data_import *in = mem_alloc(1, sizeof *in);
    in->b = b;
    in->options = options;
    in->event = in->counted = NO_EVENT;
    other_events_init(&in->others);
    bool ok = perf_data_open(&in->data, stream, err);
    if (ok) {
        ok = perf_data_read(&in->data, take_record, take_waiting, in, err);
        if (ok) {
            name_idle_tasks(in);
            set_facts(in);
            set_notes(in);
            set_losses(in);
        }
        if (in->unwinder)
            options->unwinder->close(in->unwinder);
        perf_data_close(&in->data);
    }
    other_events_done(&in->others);
    root_images_done(&in->roots);
    free(in);
    return ok;
}
