#include "collect/watched_processes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "collect/event_stream.h"
#include "collect/proc_file.h"
#include "collect/process_scan.h"
#include "read/procfs.h"

enum {
    ATTACH_MS = 3000,      /* for the answer of a runtime that has called us */
    FIRST_MS = 600,        /* for its first one, until it is asked beside the recording */
    SESSION_MS = 1000,     /* for the next ones, likewise */
    KNOWN_ATTACH_MS = 500, /* of one whose methods can be told from its memory */
    LATE_MS = 250,         /* a runtime needs some 60 until it can be listened to */
    DEAF_MS = 10,          /* one that has called runs its program at once */
    OPENING_LOOKS = 4,
    ENVIRON_BYTES_MAX = 2 << 20,
};

void watched_processes_init(struct watched_processes *w, const struct watched_processes_options *options)
{
    *w = (struct watched_processes){ .options = *options };
    w->files.trace = &options->b->trace;
    w->newcomers = newcomers_new(options->runtime ? &w->options.ask : NULL);
}

void watched_processes_done(struct watched_processes *w)
{
    newcomers_free(w->newcomers);
    free(w->deaf);
    exit_watch_done(&w->exits);
    target_files_done(&w->files);
}

static void note(const struct watched_processes *w, const char *text)
{
    if (w->options.note)
        w->options.note(w->options.user, text);
}

/* What it is called, and whether it has a runtime, is found out meanwhile. */
static void welcome(struct watched_processes *w, uint32_t pid, enum newcomer_kind kind)
{
    uint32_t process = trace_builder_process(w->options.b, pid);
    target_files_add(&w->files, process, pid);
    if (newcomers_add(w->newcomers, process, pid, kind) || w->missed)
        return;
    w->missed = true;
    note(w,
         "too many processes start at once: some are not looked at; their jitted methods will have no names");
}

/* Whether the runtime may have told of something before it was listened to. `deaf_ns`: since it called. */
static void note_late(struct watched_processes *w, uint32_t process, uint64_t deaf_ns)
{
    uint64_t began_ns = w->options.b->trace.processes.rows[process].from_ns;
    uint64_t late_ns = began_ns ? clock_monotonic_ns() - began_ns : 0; /* 0: it was there before us */
    if (late_ns <= LATE_MS * UINT64_C(1000000) && deaf_ns <= DEAF_MS * UINT64_C(1000000))
        return;
    w->late++;
    w->late_ns = late_ns > w->late_ns ? late_ns : w->late_ns;
}

/* Whether a runtime that calls goes on without an answer: so do those that one starts which has called. */
static bool goes_on(uint32_t pid)
{
    struct buffer text;
    struct span port;
    buffer_init(&text, ENVIRON_BYTES_MAX);
    bool goes = proc_file_read((pid_t)pid, "environ", &text, NULL) &&
                procfs_environ_find(buffer_span(&text), "DOTNET_DiagnosticPorts", &port) &&
                span_ends(port, ",nosuspend");
    buffer_done(&text);
    return goes;
}

/*
 * Opens a process's memory, so that its runtime need not list its methods. A runtime that changes its list of
 * code just then is not believed, and looked at again.
 */
static bool open_memory(struct watched_processes *w, uint32_t process)
{
    bool is_open = memory_names_open(w->memory, process);
    for (unsigned looks = 1; !is_open && looks < OPENING_LOOKS; looks++) {
        int wait_ms = memory_names_retry_ms(w->memory, process);
        if (wait_ms < 0)
            return false;
        poll(NULL, 0, wait_ms);
        is_open = memory_names_open(w->memory, process);
    }
    return is_open;
}

static void take_session(struct watched_processes *w, struct newcomer_found *found)
{
    open_memory(w, found->process); /* it is not to list its methods */
    runtime_names_add(w->options.runtimes, found->process, (uint32_t)found->target.pid, found->session);
    found->session = NULL; /* runtime_names has it */
    for (size_t i = w->deaf_count; i-- > 0;)
        if (w->deaf[i].process == found->process)
            w->deaf[i] = w->deaf[--w->deaf_count];
    note_late(w, found->process, found->deaf_ns);
}

/* Whether its runtime would have told what nobody else tells. */
static bool lacks_names(struct watched_processes *w, uint32_t process)
{
    return w->options.events || (process_scan_has_coreclr(&w->options.b->trace, process) &&
                                 !memory_names_open(w->memory, process));
}

/* Whether the process still is what it was when it got this row. */
static bool is_current(const struct watched_processes *w, uint32_t process, uint32_t pid)
{
    return trace_builder_process(w->options.b, pid) == process;
}

static void take_newcomers(struct watched_processes *w)
{
    struct newcomer_found found;
    while (newcomers_take(w->newcomers, &found)) {
        uint32_t pid = (uint32_t)found.target.pid;
        /* one that has become another program since is looked at anew: heard twice, it would count twice */
        if (is_current(w, found.process, pid) &&
            process_scan_identity(w->options.b, found.process, &found.target)) {
            target_files_add(&w->files, found.process, pid);
            if (found.session && !runtime_names_listens(w->options.runtimes, found.process))
                take_session(w, &found);
            else if (found.refused && lacks_names(w, found.process))
                runtime_names_refused(w->options.runtimes, pid, &found.err);
        }
        newcomer_found_done(&found);
    }
}

static void take_ended(struct watched_processes *w)
{
    struct exit_leaving one;
    while (exit_watch_take_ended(&w->exits, &one)) {
        if (!is_current(w, one.process, one.pid))
            continue;
        trace_builder_process_exit(w->options.b, one.pid, one.time_ns);
        process_filter_remove(w->options.filter, one.pid);
        newcomers_remove(w->newcomers, one.pid);
    }
}

void watched_processes_look(struct watched_processes *w)
{
    take_newcomers(w);
    take_ended(w);
}

/* The kernel gives no number of a process that it is just taking down. */
static uint32_t nobody(struct watched_processes *w, uint64_t time_ns)
{
    uint32_t process = trace_builder_process_start(w->options.b, UINT32_MAX, time_ns);
    process_scan_name(w->options.b, process, span_of("[ended]", 7));
    return process;
}

uint32_t watched_processes_row(struct watched_processes *w, uint32_t pid, uint64_t time_ns)
{
    uint32_t process = trace_builder_process(w->options.b, pid);
    if (process)
        return process;
    if (pid == UINT32_MAX)
        return nobody(w, time_ns);
    process = process_scan_read(w->options.b, pid, time_ns);
    welcome(w, pid, memory_names_open(w->memory, process) ? NEWCOMER_KNOWN : NEWCOMER_SEEN);
    return process;
}

void watched_processes_present(struct watched_processes *w, uint32_t pid)
{
    uint32_t process = process_scan_read(w->options.b, pid, 0);
    target_files_add(&w->files, process, pid);
    open_memory(w, process); /* which takes a while, the first time */
}

void watched_processes_ask_present(struct watched_processes *w, uint32_t pid)
{
    uint32_t process = trace_builder_process(w->options.b, pid);
    if (process) /* it has not ended */
        welcome(w, pid, memory_names_open(w->memory, process) ? NEWCOMER_KNOWN : NEWCOMER_SEEN);
}

void watched_processes_fork(struct watched_processes *w, const struct perf_task *task)
{
    struct trace_builder *b = w->options.b;
    if (task->pid == task->ppid) {
        if (trace_builder_process(b, task->pid))
            trace_builder_thread_start(b, task->pid, task->tid, task->time_ns);
        return;
    }
    uint32_t parent = trace_builder_process(b, task->ppid);
    if (!parent)
        return;
    uint32_t process = trace_builder_process_fork(b, task->ppid, task->pid, task->time_ns);
    process_filter_add(w->options.filter, task->pid);
    if (task->ppid == (uint32_t)getpid())
        return; /* our helpers: looking at them would take another helper */
    welcome(w, task->pid, NEWCOMER_FORKED);
    target_files_borrow(&w->files, process, parent);
}

void watched_processes_exit(struct watched_processes *w, const struct perf_task *task)
{
    struct trace_builder *b = w->options.b;
    uint32_t process = trace_builder_process(b, task->pid);
    if (!process)
        return;
    trace_builder_thread_exit(b, task->pid, task->tid, task->time_ns);
    if (task->pid != task->tid) {
        exit_watch_thread(&w->exits, process, task->time_ns);
        return;
    }
    exit_watch_main_thread(&w->exits, &(struct exit_leaving){ process, task->pid,
                                                              b->trace.processes.rows[process].start_ticks,
                                                              task->time_ns });
    take_ended(w);
}

void watched_processes_exec(struct watched_processes *w, uint32_t pid, struct span name, uint64_t time_ns)
{
    uint32_t before = trace_builder_process(w->options.b, pid);
    trace_builder_process_exec(w->options.b, pid, name, time_ns);
    w->execs++;
    welcome(w, pid, w->options.port && w->options.port_is_ours ? NEWCOMER_CALLS : NEWCOMER_EXECED);
    target_files_borrow(&w->files, trace_builder_process(w->options.b, pid), before);
}

/* Another look would take another helper process. */
static const struct target *find_known(const struct watched_processes *w, uint32_t pid)
{
    const struct target_list *known = w->options.known;
    for (size_t i = 0; known && i < known->count; i++)
        if ((uint32_t)known->items[i].pid == pid)
            return proc_file_is_process(known->items[i].pid, known->items[i].start_ticks) ? &known->items[i]
                                                                                          : NULL;
    return NULL;
}

/* Of those that were there before us everything is known from the start. */
static void identify(struct watched_processes *w, uint32_t pid)
{
    uint32_t process = trace_builder_process(w->options.b, pid);
    const struct target *known = find_known(w, pid);
    struct target target;
    if (known) {
        process_scan_identity(w->options.b, process, known);
    } else if (target_open((pid_t)pid, &target, NULL)) {
        process_scan_identity(w->options.b, process, &target);
        target_done(&target);
    }
}

static void remember_deaf(struct watched_processes *w, uint32_t process, uint32_t pid,
                          const struct error *why)
{
    w->deaf = mem_grow(w->deaf, &w->deaf_capacity, w->deaf_count + 1, sizeof *w->deaf);
    w->deaf[w->deaf_count++] = (struct deaf_process){ process, pid, *why };
}

/*
 * Methods that their memory tells of need not be listed. A runtime that does not answer at once is asked
 * again while we record: how long the recording lasts is not its to say.
 */
static void attach_now(struct watched_processes *w, uint32_t pid)
{
    uint32_t process = trace_builder_process(w->options.b, pid);
    bool known = open_memory(w, process);
    bool hasty = known && !w->options.events;
    struct runtime_session_options ask = w->options.ask;
    ask.connect_timeout_ms = ask.first_timeout_ms = hasty ? KNOWN_ATTACH_MS : FIRST_MS;
    ask.reply_timeout_ms = hasty ? KNOWN_ATTACH_MS : SESSION_MS;
    ask.no_list = known;
    struct error err;
    if (runtime_names_attach(w->options.runtimes, pid, &ask, &err))
        return;
    bool is_deaf = err.os_error == ETIMEDOUT && !hasty;
    if (is_deaf)
        remember_deaf(w, process, pid, &err);
    else if (err.what[0] && !known && lacks_names(w, process)) {
        runtime_names_refused(w->options.runtimes, pid, &err);
        return;
    }
    welcome(w, pid, hasty ? NEWCOMER_KNOWN : is_deaf ? NEWCOMER_DEAF : NEWCOMER_SEEN);
}

void watched_processes_meet(struct watched_processes *w, uint32_t pid, bool attach)
{
    target_files_add(&w->files, trace_builder_process_start(w->options.b, pid, 0), pid);
    identify(w, pid);
    if (attach)
        attach_now(w, pid);
}

void watched_processes_called(struct watched_processes *w, const struct diagnostic_caller *caller)
{
    const struct watched_processes_options *o = &w->options;
    uint32_t pid = (uint32_t)caller->pid;
    struct error err;
    uint64_t now_ns = clock_monotonic_ns();
    uint32_t process = watched_processes_row(w, pid, now_ns);
    process_scan_again(o->b, process, now_ns);
    identify(w, pid);
    newcomers_hand_over(w->newcomers, pid);
    take_newcomers(w);
    struct runtime_session_options ask = o->ask;
    ask.connect_timeout_ms = ask.reply_timeout_ms = ATTACH_MS;
    ask.no_list = o->port_is_ours; /* it tells of each from its first on, and would list all when it ends */
    bool heard = runtime_names_listens(o->runtimes, process);
    /* one that does not wait may call before it can open a session: it is asked again */
    if (!heard && !runtime_names_attach(o->runtimes, pid, &ask, &err))
        welcome(w, pid, o->port_is_ours ? NEWCOMER_CALLED : NEWCOMER_EXECED);
    else if (!heard && goes_on(pid))
        note_late(w, process, 0);
    if (o->port_is_ours)
        event_peer_hand_down_port(
            &(struct event_peer){ caller->pid, caller->start_ticks, KNOWN_ATTACH_MS, KNOWN_ATTACH_MS },
            diagnostic_port_path(o->port));
    if (!o->resume)
        diagnostic_port_keep(o->port, caller);
    else if (!diagnostic_port_resume(o->port, caller, &err) &&
             proc_file_is_process(caller->pid, caller->start_ticks))
        note(w, err.what);
}

static void tell_deaf(struct watched_processes *w)
{
    for (size_t i = 0; i < w->deaf_count; i++) {
        const struct deaf_process *one = &w->deaf[i];
        if (is_current(w, one->process, one->pid) && lacks_names(w, one->process))
            runtime_names_refused(w->options.runtimes, one->pid, &one->why);
    }
}

void watched_processes_finish(struct watched_processes *w, unsigned patience_ms)
{
    char text[128];
    size_t left = newcomers_finish(w->newcomers, patience_ms);
    watched_processes_look(w);
    tell_deaf(w);
    if (!left)
        return;
    snprintf(text, sizeof text,
             "%zu processes that started at the end were not looked at in time; their jitted methods have no "
             "names",
             left);
    note(w, text);
}
