#include "collect/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu_lease.h"
#include "base/mem.h"
#include "base/time_queue.h"
#include "base/units.h"
#include "collect/cpu_account.h"
#include "collect/kernel_records.h"
#include "collect/listen_check.h"
#include "collect/memory_names.h"
#include "collect/process_scan.h"
#include "collect/queue_item.h"
#include "collect/runtime_ending.h"
#include "collect/runtime_log.h"
#include "collect/runtime_names.h"
#include "collect/sample_stacks.h"
#include "collect/stack_room.h"
#include "collect/wakeups.h"
#include "collect/watched_processes.h"
#include "trace/facts.h"

enum {
    RECORDER_TICK_MS = 50,
    RECORDER_FIRST_TICK_MS = 10, /* for the first of a command's life, which is all of it for some */
    RECORDER_FIRST_MS = 500,
    RECORDER_QUIET_TICK_MS = 200,  /* while nothing is new: each look finds its caches cold */
    RECORDER_CHURN_TICK_MS = 5,    /* while sampled code is freed at once, or deep stacks change */
    RECORDER_SWITCHES_TICK_MS = 5, /* of which there can be tens of thousands a second */
    /* CPU time before all others: what a big process costs at first, then a share of a CPU */
    RECORDER_LEASE_MS = 250,
    RECORDER_LEASE_PERCENT = 20,
    RECORDER_NICE = -10, /* behind that */
    /* how far a runtime's events may lag behind the kernel's: it sends them every 100 ms or so */
    RECORDER_LAG_MS = 300,
    RECORDER_HURRY_MS = 120,
    RECORDER_ENDED_MS = 5000, /* after which nothing comes of a process that ended */
    RECORDER_FLUSH_MS = 350,
    RECORDER_PROGRESS_MS = 150,
    RECORDER_QUEUE_BYTES = 64 << 20,
    RECORDER_LAST_LOOK_MS = 900, /* at processes that have just started: the end is waited for */
};

#define MS_NS 1000000ull

struct recorder {
    struct recorder_options options;
    struct trace_builder *b;
    struct trace_writer *w;
    struct perf_events events;
    struct time_queue queue; /* stacks and what runtimes tell, until each can have told of the same time */
    struct kernel_records *records;
    struct runtime_names *runtimes;
    struct memory_names *memory;
    struct sample_stacks *stacks;
    struct watched_processes watched;
    struct record_stats stats;
    struct wakeups wakeups;
    size_t seen; /* processes and mappings, at the last look */
    unsigned tick_ms;
    uint64_t started_ns, flushed_ns, progress_ns;
    struct listen_check listening;
    struct cpu_account *account; /* of processes whose CPU time is all that is sampled; else NULL */
};

static bool recorder_wants_events(const struct recorder *r)
{
    return r->options.topics || r->options.asked;
}

static bool recorder_samples(const struct recorder *r)
{
    return r->options.perf.cpu || r->options.perf.context_switches;
}

static void recorder_sample(struct recorder *r, struct span item)
{
    enum stack_end end = sample_stacks_add(r->stacks, item);
    r->stats.samples++;
    r->stats.whole += end == STACK_WHOLE;
    r->stats.truncated += end == STACK_TRUNCATED;
    r->stats.broken += end == STACK_BROKEN;
}

static void recorder_event(struct recorder *r, struct span item)
{
    const struct trace *t = &r->b->trace;
    size_t before = t->events.count;
    runtime_log_apply(r->b, item);
    if (t->events.count > before)
        memory_names_sampled(r->memory, t->events.rows[before].process, t->events.rows[before].stack);
}

static void recorder_expect(void *user, const struct time_item *item, struct span bytes)
{
    struct recorder *r = user;
    if (item->kind == QUEUE_SAMPLE)
        sample_stacks_expect(r->stacks, bytes);
}

static void recorder_take(void *user, const struct time_item *item, struct span bytes)
{
    struct recorder *r = user;
    switch ((enum queue_item_kind)item->kind) {
    case QUEUE_SAMPLE:
        recorder_sample(r, bytes);
        break;
    case QUEUE_CODE:
        runtime_names_apply(r->runtimes, bytes);
        break;
    case QUEUE_EVENT:
        recorder_event(r, bytes);
        break;
    case QUEUE_PERF_RECORD: /* waits elsewhere */
        break;
    }
    kernel_records_relieve(r->records, false);
}

/* Reads all sources; what is older than any of them can still report goes into the trace. */
static void recorder_drain(struct recorder *r, bool last)
{
    uint64_t until_ns = kernel_records_drain(r->records, last);
    bool lagging = runtime_names_drain(r->runtimes);
    uint64_t lag_ns = lagging ? RECORDER_LAG_MS * MS_NS : 0;
    if (lagging && r->queue.live_bytes > RECORDER_QUEUE_BYTES / 2) /* rather out of order than without room */
        lag_ns = RECORDER_HURRY_MS * MS_NS;
    time_queue_release(&r->queue, last ? until_ns : until_ns - lag_ns, recorder_take, r);
}

static void recorder_put_modules(struct recorder *r, bool all)
{
    memory_names_modules(r->memory, all);
    told_code_put_modules(runtime_names_code(r->runtimes));
}

static bool recorder_flush(struct recorder *r, uint64_t now, struct error *err)
{
    if (now - r->flushed_ns < RECORDER_FLUSH_MS * MS_NS)
        return true;
    r->flushed_ns = now;
    memory_names_close_ended(r->memory, now - RECORDER_ENDED_MS * MS_NS);
    trace_builder_forget_ended(r->b, now - RECORDER_ENDED_MS * MS_NS);
    recorder_put_modules(r, false);
    return trace_writer_flush(r->w, r->b, err);
}

static void recorder_progress(struct recorder *r, uint64_t now)
{
    if (!r->options.progress || now - r->progress_ns < RECORDER_PROGRESS_MS * MS_NS)
        return;
    r->progress_ns = now;
    struct runtime_session_counts told = runtime_names_counts(r->runtimes);
    r->options.progress(r->options.user, &(struct record_progress){
                                             .elapsed_ns = now - r->started_ns,
                                             .samples = r->stats.samples,
                                             .lost = kernel_records_counts(r->records).lost,
                                             .broken = r->stats.broken,
                                             .events = told.told,
                                             .events_lost = told.lost,
                                             .file_bytes = trace_writer_bytes(r->w),
                                         });
}

static bool recorder_over(struct recorder *r, uint64_t now)
{
    if (r->options.stop && *r->options.stop)
        r->stats.ended_by = RECORD_ENDED_SIGNAL;
    else if (r->options.duration_ns && now - r->started_ns >= r->options.duration_ns)
        r->stats.ended_by = RECORD_ENDED_DURATION;
    else if (runtime_names_stop_seen(r->runtimes))
        r->stats.ended_by = RECORD_ENDED_STOP_WHEN;
    else if (r->options.perf.pids && exit_watch_all_ended(&r->watched.exits))
        r->stats.ended_by = RECORD_ENDED_TARGET_EXIT;
    else
        return false;
    return true;
}

/*
 * How long nobody looks at the rings. Who is born, and what is mapped, is looked at soon, for it may be gone
 * soon; so is all of a command that we started, which may end at any time.
 */
static unsigned recorder_tick_ms(struct recorder *r)
{
    const struct trace *t = &r->b->trace;
    size_t seen = t->processes.count + t->mappings.count;
    bool newcomers = !r->options.perf.pids || r->options.perf.on_exec;
    if (memory_names_churn(r->memory) || sample_stacks_are_pressed(r->stacks))
        return RECORDER_CHURN_TICK_MS;
    if (r->options.perf.on_exec && clock_monotonic_ns() - r->started_ns < RECORDER_FIRST_MS * MS_NS)
        return RECORDER_FIRST_TICK_MS;
    if (newcomers || seen != r->seen)
        r->tick_ms = RECORDER_TICK_MS;
    else if (r->tick_ms < RECORDER_QUIET_TICK_MS)
        r->tick_ms *= 2;
    r->seen = seen;
    return r->tick_ms;
}

/* When it is time to look. */
static uint64_t recorder_next_look_ns(struct recorder *r)
{
    uint64_t until_ns = clock_monotonic_ns() + recorder_tick_ms(r) * MS_NS;
    uint64_t end_ns = r->started_ns + r->options.duration_ns;
    return r->options.duration_ns && end_ns < until_ns ? end_ns : until_ns;
}

/*
 * Sleeps until it is time to look; false when the user wants an end. What runtimes send is taken meanwhile: a
 * connection holds little, and who cannot send drops events.
 */
static bool recorder_wait(struct recorder *r)
{
    const struct runtime_names *streams = recorder_wants_events(r) ? r->runtimes : NULL;
    uint64_t until_ns = recorder_next_look_ns(r);
    enum wakeup by;
    while ((by = wakeups_sleep(&r->wakeups, until_ns, streams)) == WAKEUP_STREAM)
        runtime_names_drain(r->runtimes);
    return by != WAKEUP_STOP;
}

static void recorder_take_callers(struct recorder *r)
{
    struct diagnostic_caller caller;
    while (r->options.port && diagnostic_port_take(r->options.port, &caller)) {
        kernel_records_drain(r->records, true); /* what the kernel told of it comes first */
        watched_processes_called(&r->watched, &caller);
    }
}

static bool recorder_loop(struct recorder *r, struct cpu_lease *lease, struct error *err)
{
    for (;;) {
        bool going = recorder_wait(r);
        cpu_lease_renew(lease);
        recorder_drain(r, false);
        uint64_t now = clock_monotonic_ns();
        if (!recorder_flush(r, now, err)) {
            r->stats.ended_by = RECORD_ENDED_ERROR;
            return false;
        }
        watched_processes_look(&r->watched);
        recorder_take_callers(r);
        /* methods are looked for as stacks are unwound, which neither the kernel's nor those of events are */
        memory_names_look(r->memory, r->options.kernel_chains || recorder_wants_events(r));
        recorder_progress(r, now);
        if (!going)
            r->stats.ended_by = RECORD_ENDED_SIGNAL;
        if (!going || recorder_over(r, now))
            return true;
    }
}

/* The rings report a loss with the next record that fits; at the end the kernel's own count decides. */
static void recorder_count(struct recorder *r)
{
    struct kernel_records_counts counts = kernel_records_counts(r->records);
    uint64_t lost, more = 0, at_ns = r->stats.stopped_ns;
    if (perf_events_lost(&r->events, &lost) && lost > counts.lost_in_rings)
        more = lost - counts.lost_in_rings;
    if (more)
        trace_builder_loss(r->b, LOSS_RING, 0, at_ns, at_ns, more);
    r->stats.filtered = counts.filtered;
    r->stats.throttled = counts.throttled;
    r->stats.lost = counts.lost + more;
}

/* All that the last samples ask of the targets, while their runtimes have been told to end. */
static void recorder_finish_samples(struct recorder *r, struct runtime_ending *ending)
{
    sample_stacks_finish(r->stacks);
    runtime_ending_work(ending); /* others begin */
    memory_names_finish(r->memory);
}

static void recorder_rundown(struct recorder *r)
{
    uint64_t begin = clock_monotonic_ns();
    struct runtime_ending ending = { .runtimes = r->runtimes,
                                     .wants_events = recorder_wants_events(r),
                                     .meanwhile = r->options.meanwhile,
                                     .user = r->options.user };
    watched_processes_finish(&r->watched, RECORDER_LAST_LOOK_MS);
    bool any = runtime_names_running(r->runtimes);
    runtime_names_spare(r->runtimes);
    recorder_finish_samples(r, &ending);
    runtime_ending_hear(&ending);
    runtime_names_stop(r->runtimes);
    runtime_ending_await_lists(&ending);
    r->stats.rundown_ns = any ? clock_monotonic_ns() - begin : 0;
}

/* For when the lease is used up; where it is not ours to ask for, we are as everybody. Returns what was. */
static int recorder_hurry(void)
{
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, 0);
    if (errno == 0 && nice > RECORDER_NICE)
        setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
    return nice;
}

/* What was read of the targets makes room for who looks up the names. */
static void recorder_forget_targets(struct recorder *r)
{
    sample_stacks_free(r->stacks);
    memory_names_free(r->memory);
    kernel_records_free(r->records);
    runtime_names_queue(r->runtimes, NULL);
    time_queue_done(&r->queue);
    r->records = NULL;
    r->stacks = NULL;
    r->memory = r->watched.memory = NULL;
    runtime_names_watch(r->runtimes, &(struct method_watcher){ 0 });
}

/* Those that were refused are told of one by one. */
static void recorder_note_missed(struct recorder *r)
{
    size_t missed = listen_check_missed(&r->b->trace), refused = runtime_names_refused_count(r->runtimes);
    char text[256];
    if (missed <= refused)
        return;
    snprintf(text, sizeof text,
             "%zu .NET process%s could not be listened to in time: events of %s are missing",
             missed - refused, missed - refused == 1 ? "" : "es", missed - refused == 1 ? "it" : "them");
    r->options.note(r->options.user, text);
}

static void recorder_note_hung(struct recorder *r)
{
    pid_t pid = r->memory ? memory_names_hung(r->memory) : 0;
    char text[256];
    if (!pid || !r->options.note)
        return;
    snprintf(
        text, sizeof text,
        "the memory of process %d could not be read in time: methods that it has jitted may have no names; "
        "record once more when the machine is less busy",
        (int)pid);
    r->options.note(r->options.user, text);
}

static void recorder_note_late(struct recorder *r)
{
    size_t late = r->watched.late;
    char text[256];
    if (late == 0)
        return;
    snprintf(text, sizeof text,
             "%zu .NET process%s could be listened to only %s%s after %s start: %s first events are missing",
             late, late == 1 ? "" : "es", late == 1 ? "" : "up to ", units_duration(r->watched.late_ns).text,
             late == 1 ? "its" : "their", late == 1 ? "its" : "their");
    r->options.note(r->options.user, text);
}

static void recorder_account(struct recorder *r)
{
    const struct perf_events_options *perf = &r->options.perf;
    struct cpu_account_scope scope = { .kernel = r->events.kernel,
                                       .children = perf->on_exec,
                                       .all_cpus = r->events.system_wide };
    if (perf->cpu && !perf->context_switches && !r->events.hardware)
        r->account = cpu_account_open(perf->pids, perf->pid_count, scope);
}

/* When the threads that ran did so too briefly for their clocks, or the clocks were late. */
static void recorder_note_gap(struct recorder *r, uint64_t used_ns)
{
    uint64_t sampled_ns = (r->stats.samples + r->stats.lost) * r->events.period_ns;
    char text[512];
    if (!cpu_account_is_gap(r->account, used_ns, sampled_ns))
        return;
    r->stats.cpu_missed_ns = used_ns - sampled_ns;
    if (!r->options.note)
        return;
    cpu_account_tell_gap(r->account, used_ns, sampled_ns, text, sizeof text);
    r->options.note(r->options.user, text);
}

bool recorder_run(struct recorder *r, struct trace_writer *w, struct record_stats *stats, struct error *err)
{
    r->w = w;
    int nice = recorder_hurry();
    /* a ring overflows, and code is freed, while who reads them waits for a CPU */
    struct cpu_lease *lease = cpu_lease_begin(RECORDER_LEASE_MS, RECORDER_LEASE_PERCENT);
    bool ok = recorder_loop(r, lease, err);
    cpu_lease_end(lease);
    diagnostic_port_let_all_go(r->options.port); /* who calls from now on waits for nobody */
    perf_events_disable(&r->events);
    uint64_t used_ns = cpu_account_ns(r->account);
    r->stats.stopped_ns = clock_monotonic_ns();
    r->stats.duration_ns = r->stats.stopped_ns - r->started_ns;
    recorder_drain(r, true);
    setpriority(PRIO_PROCESS, 0, nice); /* no ring waits for us any more */
    recorder_rundown(r);
    recorder_drain(r, true);
    recorder_put_modules(r, true);
    recorder_count(r);
    recorder_note_gap(r, used_ns);
    recorder_note_hung(r);
    recorder_forget_targets(r);
    r->stats.processes = r->b->trace.processes.count - 1 - r->watched.execs;
    r->stats.threads = r->b->trace.threads.count - 1;
    struct runtime_session_counts told = runtime_names_counts(r->runtimes);
    r->stats.events = told.told;
    r->stats.events_lost = told.lost;
    if (ok && recorder_wants_events(r) && told.bytes == 0) {
        ok = listen_check_unheard(&r->listening, r->runtimes, r->options.note, r->options.user, err);
        r->stats.ended_by = ok ? r->stats.ended_by : RECORD_ENDED_ERROR;
    } else if (recorder_wants_events(r) && r->options.note) {
        recorder_note_missed(r);
        recorder_note_late(r);
    }
    *stats = r->stats;
    return ok;
}

static void recorder_facts(struct recorder *r)
{
    if (r->options.perf.cpu) {
        trace_set_fact_number(&r->b->trace, FACT_RATE_HZ, r->options.perf.rate_hz);
        trace_set_fact(&r->b->trace, FACT_EVENT, r->events.hardware ? "cycles" : "cpu-clock");
        trace_set_fact(&r->b->trace, FACT_UNIT, "ns");
    }
    if (r->options.perf.context_switches)
        trace_set_fact(&r->b->trace, FACT_COUNTED_EVENT, "context-switches");
    trace_set_fact(&r->b->trace, FACT_STACKS, r->options.kernel_chains ? "frame pointers" : "unwound");
    trace_set_fact(&r->b->trace, FACT_KERNEL_FRAMES, r->events.kernel ? "yes" : "no");
    trace_set_fact_number(&r->b->trace, FACT_STARTED_MONOTONIC_NS, r->started_ns);
    trace_set_fact_number(&r->b->trace, FACT_STARTED_REALTIME_NS, clock_realtime_ns());
}

/* The kernel switches: who may not look into it sees no switch. */
static bool recorder_sees_switches(const struct recorder *r, struct error *err)
{
    if (!r->options.perf.context_switches || r->events.kernel)
        return true;
    error_set(err, ERROR_PERMISSION, "context switches happen in the kernel, which we may not look into");
    return error_hint(err, "run with sudo, or sudo setcap cap_perfmon,cap_sys_ptrace=ep on clrperf");
}

/* Said once: what the result lacks, and the fix. */
static void recorder_note_rights(const struct recorder *r)
{
    if (r->events.kernel || !r->options.note)
        return;
    r->options.note(r->options.user,
                    "kernel stacks off - kernel.perf_event_paranoid is 2 or more and CAP_PERFMON is missing "
                    "- user frames "
                    "only - fix: run with sudo, or sudo setcap cap_perfmon,cap_sys_ptrace=ep on clrperf");
}

static void recorder_method(void *user, uint32_t process, const struct method_place *method, bool ends)
{
    const struct recorder *r = user;
    sample_stacks_method(r->stacks, process, method, ends);
}

static bool recorder_knows_methods(void *user, uint32_t process)
{
    const struct recorder *r = user;
    return memory_names_knows(r->memory, process) ||
           (!runtime_names_listens(r->runtimes, process) && memory_names_open(r->memory, process));
}

/* From now on the events report what is mapped and who is born; what came before is read from /proc. */
static bool recorder_begin(struct recorder *r, struct error *err)
{
    r->started_ns = clock_monotonic_ns();
    if (r->options.perf.on_exec && !r->events.system_wide) /* they start by themselves */
        return true;
    if (!perf_events_enable(&r->events, err))
        return false;
    if (r->options.perf.on_exec) /* nothing of it counts yet */
        return true;
    for (size_t i = 0; i < r->options.perf.pid_count; i++)
        process_scan_again(r->b, trace_builder_process(r->b, (uint32_t)r->options.perf.pids[i]), 0);
    return true;
}

static void recorder_note_kernel(const struct recorder *r, const struct error *why)
{
    char text[2 * sizeof why->what + sizeof why->hint];
    snprintf(text, sizeof text,
             "the kernel does not tell of processes and images that are new: their events have fewer names; "
             "%s; %s",
             why->what, why->hint);
    if (r->options.note)
        r->options.note(r->options.user, text);
}

/* Without samples the kernel still tells of processes and mappings; where it may not, that is no failure. */
static bool recorder_open_events(struct recorder *r, struct error *err)
{
    const struct perf_events_options *perf = &r->options.perf;
    if (!recorder_samples(r)) {
        struct error why;
        if (!perf_events_open(perf, &r->events, &why))
            recorder_note_kernel(r, &why);
        return true;
    }
    bool opened = r->options.kernel_chains ? stack_room_open_chains(perf, &r->events, err)
                                           : stack_room_open(perf, &r->events, err);
    if (!opened || !recorder_sees_switches(r, err))
        return false;
    recorder_note_rights(r);
    return true;
}

/* Who has no right to any of the runtimes is told so now, and not at the end. */
static bool recorder_may_listen(struct recorder *r, struct error *err)
{
    const struct recorder_options *o = &r->options;
    if (!recorder_wants_events(r) || o->perf.on_exec)
        return true;
    r->listening.alone = !recorder_samples(r);
    listen_check_others(&r->listening, o->present, o->present_count);
    return listen_check_begin(&r->listening, o->perf.pids, o->perf.pid_count, r->runtimes, err);
}

static void recorder_watch(struct recorder *r)
{
    const struct recorder_options *o = &r->options;
    r->runtimes = runtime_names_new(r->b, o->runtime, recorder_wants_events(r), o->note, o->user);
    watched_processes_init(&r->watched, &(struct watched_processes_options){
                                            .b = r->b,
                                            .runtimes = r->runtimes,
                                            .filter = &r->events.filter,
                                            .ask = {
                                                .collections = true,
                                                .topics = o->topics,
                                                .asked = o->asked,
                                                .stopping = o->stopping,
                                                .buffer_mb = o->events_buffer_mb,
                                            },
                                            .runtime = o->runtime,
                                            .events = recorder_wants_events(r),
                                            .port = o->port,
                                            .resume = o->resume,
                                            .port_is_ours = o->port_is_ours,
                                            .known = o->chosen,
                                            .note = o->note,
                                            .user = o->user,
                                        });
}

static bool recorder_prepare(struct recorder *r, struct error *err)
{
    const struct perf_events_options *perf = &r->options.perf;
    recorder_watch(r);
    if (!exit_watch_chosen(&r->watched.exits, perf->pids, r->options.start_ticks, perf->pid_count, err) ||
        !recorder_may_listen(r, err) || !recorder_open_events(r, err))
        return false;
    wakeups_init(&r->wakeups, &(struct wakeup_sources){
                                  .events = &r->events,
                                  .exits = &r->watched.exits,
                                  .stop_fd = r->options.stop_fd,
                                  .port_fd = r->options.port ? diagnostic_port_fd(r->options.port) : -1,
                              });
    /* what is lost without memory is stacks, and these are the kernel's then */
    r->memory = memory_names_new(r->b, &r->watched.files, r->runtimes,
                                 r->options.kernel_chains ? NULL : r->options.note, r->options.user);
    r->watched.memory = r->memory;
    r->stacks = sample_stacks_new(r->b, &r->watched.files, r->memory, r->events.frames_max);
    r->records = kernel_records_new(&(struct kernel_records_options){
        .b = r->b,
        .events = &r->events,
        .watched = &r->watched,
        .stacks = r->stacks,
        .queue = &r->queue,
        .everybody = !perf->pids,
        .from_exec = perf->on_exec,
        .kernel_chains = r->options.kernel_chains,
        .tick_ms = perf->context_switches ? RECORDER_SWITCHES_TICK_MS : RECORDER_TICK_MS,
    });
    runtime_names_watch(r->runtimes, &(struct method_watcher){ recorder_method, recorder_knows_methods, r });
    runtime_names_queue(r->runtimes, &r->queue);
    /* the first look at a process takes long: samples that come meanwhile would not fit into the rings */
    for (size_t i = 0; i < perf->pid_count; i++)
        watched_processes_meet(&r->watched, (uint32_t)perf->pids[i], !perf->on_exec);
    for (size_t i = 0; i < r->options.present_count; i++)
        watched_processes_present(&r->watched, (uint32_t)r->options.present[i]);
    if (!recorder_begin(r, err))
        return false;
    for (size_t i = 0; i < r->options.present_count; i++)
        watched_processes_ask_present(&r->watched, (uint32_t)r->options.present[i]);
    recorder_account(r);
    recorder_facts(r);
    if (r->options.release_fd >= 0 && write(r->options.release_fd, "", 1) != 1)
        return error_system(err, errno, "cannot start the command");
    return true;
}

bool recorder_start(const struct recorder_options *options, struct trace_builder *b, struct recorder **out,
                    struct error *err)
{
    struct recorder *r = mem_alloc(1, sizeof *r);
    r->options = *options;
    r->events = (struct perf_events){ .filter = { -1, -1 },
                                      .births = { -1, -1 } }; /* none, when they cannot be opened */
    r->b = b;
    r->tick_ms = RECORDER_TICK_MS;
    time_queue_init(&r->queue, RECORDER_QUEUE_BYTES);
    r->queue.expect = recorder_expect;
    if (!recorder_prepare(r, err)) {
        recorder_free(r);
        return false;
    }
    *out = r;
    return true;
}

void recorder_free(struct recorder *r)
{
    if (!r)
        return;
    if (r->events.rings)
        perf_events_close(&r->events);
    kernel_records_free(r->records);
    sample_stacks_free(r->stacks);
    memory_names_free(r->memory);
    runtime_names_free(r->runtimes);
    watched_processes_done(&r->watched);
    time_queue_done(&r->queue);
    cpu_account_close(r->account);
    wakeups_done(&r->wakeups);
    free(r);
}

const struct target_files *recorder_files(const struct recorder *r)
{
    return &r->watched.files;
}
