#include "collect/runtime_names.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/proc_file.h"
#include "collect/runtime_log.h"
#include "collect/thread_ids.h"

enum {
    NAMES_SESSIONS_MAX = 256,
    /* of one runtime: what does not fit is counted */
    NAMES_METHODS_MAX = 4 << 20,
    NAMES_MODULES_MAX = 1 << 18,
};

struct named_process {
    struct runtime_session *session; /* NULL when none could be opened, or when over */
    struct runtime_names *names;
    uint32_t process, pid;
    uint64_t methods, modules; /* that it told */
    struct runtime_log log;
    struct thread_ids *threads;
    bool spared; /* of its list of methods */
    bool stopped;
};

struct runtime_names {
    struct trace_builder *b;
    bool enabled, events;
    void (*note)(void *user, const char *text);
    void *user;
    struct named_process *processes[NAMES_SESSIONS_MAX];
    size_t process_count;
    struct told_code *code;
    struct time_queue *queue; /* borrowed, or NULL */
    uint64_t drained_ns;      /* when the last drain began */
    /* from the stop on: sampled addresses of which no method is known; others are not worth a row */
    struct wanted_addr *wanted;
    size_t wanted_count;
    struct method_watcher watcher;
    struct runtime_session_counts ended; /* of sessions that are over */
    bool stop_seen;                      /* in one of them */
    uint32_t *refused;                   /* pids */
    size_t refused_count, refused_capacity;
    struct error refusal; /* the first */
};

struct wanted_addr {
    uint64_t addr;
    uint32_t process;
};

struct runtime_names *runtime_names_new(struct trace_builder *b, bool enabled, bool events,
                                        void (*note)(void *user, const char *text), void *user)
{
    struct runtime_names *names = mem_alloc(1, sizeof *names);
    names->b = b;
    names->code = told_code_new(b);
    names->enabled = enabled;
    names->events = events;
    names->note = note;
    names->user = user;
    return names;
}

void runtime_names_free(struct runtime_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->process_count; i++) {
        runtime_session_close(names->processes[i]->session);
        thread_ids_free(names->processes[i]->threads);
        free(names->processes[i]);
    }
    told_code_free(names->code);
    free(names->wanted);
    free(names->refused);
    free(names);
}

struct told_code *runtime_names_code(struct runtime_names *names)
{
    return names->code;
}

void runtime_names_watch(struct runtime_names *names, const struct method_watcher *watcher)
{
    names->watcher = *watcher;
}

void runtime_names_queue(struct runtime_names *names, struct time_queue *queue)
{
    names->queue = queue;
}

static bool names_are_known(const struct runtime_names *names, uint32_t process)
{
    return names->watcher.is_known && names->watcher.is_known(names->watcher.user, process);
}

static void names_note(const struct runtime_names *names, uint32_t pid, const char *what, const char *when,
                       const struct error *err)
{
    char text[1200];
    snprintf(text, sizeof text, "%s of process %" PRIu32 "%s %s: %s%s%s", what, pid, when,
             what[0] == 'e' ? "are missing" : "will have no names", err->what, err->hint[0] ? "; " : "",
             err->hint);
    if (names->note)
        names->note(names->user, text);
}

/* `when`: they were jitted, "" or with a blank in front. */
static void names_tell(struct runtime_names *names, uint32_t pid, const char *when, const struct error *err)
{
    if (!names_are_known(names, trace_builder_process(names->b, pid)))
        names_note(names, pid, "jitted methods", when, err);
}

/* That it ended by itself, or broke off, matters to events whoever knows the methods. */
static void names_tell_broken(struct runtime_names *names, uint32_t pid, const struct error *err)
{
    if (names->events)
        names_note(names, pid, "events", " from now on", err);
    else
        names_tell(names, pid, " from now on", err);
}

void runtime_names_refused(struct runtime_names *names, uint32_t pid, const struct error *err)
{
    for (size_t i = 0; i < names->refused_count; i++)
        if (names->refused[i] == pid)
            return; /* it was asked again, for another reason */
    if (names->refused_count == 0)
        names->refusal = *err;
    names->refused =
        mem_grow(names->refused, &names->refused_capacity, names->refused_count + 1, sizeof *names->refused);
    names->refused[names->refused_count++] = pid;
    if (names->events)
        names_note(names, pid, "events", "", err);
    else
        names_tell(names, pid, "", err);
}

const struct error *runtime_names_refusal(const struct runtime_names *names)
{
    return names->refused_count ? &names->refusal : NULL;
}

size_t runtime_names_refused_count(const struct runtime_names *names)
{
    return names->refused_count;
}

/* The place of a session that is over, or a new one; NULL when all are taken. */
static struct named_process *names_room(struct runtime_names *names)
{
    for (size_t i = 0; i < names->process_count; i++)
        if (!names->processes[i]->session)
            return names->processes[i];
    if (names->process_count == NAMES_SESSIONS_MAX)
        return NULL;
    struct named_process *room = mem_alloc(1, sizeof *room);
    names->processes[names->process_count++] = room;
    return room;
}

void runtime_names_add(struct runtime_names *names, uint32_t process, uint32_t pid,
                       struct runtime_session *session)
{
    struct named_process *room = names_room(names);
    if (room) {
        *room = (struct named_process){ .session = session, .names = names, .process = process, .pid = pid };
        room->log = runtime_log_begin(names->b, process, runtime_session_told(session));
        room->threads = thread_ids_new((pid_t)pid, names->b->trace.processes.rows[process].ns_pid);
        return;
    }
    struct error err;
    runtime_session_close(session);
    error_set(&err, ERROR_LIMIT, "%d other runtimes are listened to", NAMES_SESSIONS_MAX);
    runtime_names_refused(names, pid, &err);
}

bool runtime_names_attach(struct runtime_names *names, uint32_t pid,
                          const struct runtime_session_options *options, struct error *err)
{
    uint32_t process = trace_builder_process(names->b, pid);
    *err = (struct error){ 0 };
    if (!names->enabled)
        return true;
    if (!process || !names->b->trace.processes.rows[process].runtime_version)
        return false;
    struct runtime_session *session;
    if (runtime_session_start((pid_t)pid, names->b->trace.processes.rows[process].start_ticks, options,
                              &session, err))
        runtime_names_add(names, process, pid, session);
    else if (err->kind == ERROR_PERMISSION)
        runtime_names_refused(names, pid, err);
    else
        return false;
    return true;
}

static int wanted_compare(const void *a, const void *b)
{
    const struct wanted_addr *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

static void names_collect_wanted(struct runtime_names *names)
{
    const struct trace *t = &names->b->trace;
    names->wanted = mem_alloc(t->locations.count, sizeof *names->wanted);
    for (size_t i = 1; i < t->locations.count; i++) {
        const struct trace_location *row = &t->locations.rows[i];
        if (row->process && !row->code)
            names->wanted[names->wanted_count++] =
                (struct wanted_addr){ row->addr - (row->is_return ? 1 : 0), row->process };
    }
    qsort(names->wanted, names->wanted_count, sizeof *names->wanted, wanted_compare);
}

static bool names_wants(const struct runtime_names *names, uint32_t process, uint64_t addr,
                        uint64_t size_bytes)
{
    size_t low = 0, high = names->wanted_count;
    struct wanted_addr first = { addr, process };
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (wanted_compare(&names->wanted[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->wanted_count && names->wanted[low].process == process &&
           names->wanted[low].addr - addr < size_bytes;
}

/* Now, or in its turn; out of turn is better than lost. */
static void names_wait(struct runtime_names *names, const struct code_change *change)
{
    struct span bytes = span_of(change, sizeof *change);
    if (!names->queue || !time_queue_add(names->queue, change->time_ns, QUEUE_CODE, bytes))
        runtime_names_apply(names, bytes);
}

static void names_tell_watcher(const struct runtime_names *names, const struct code_change *change, bool ends)
{
    struct method_place place = { change->addr, change->size_bytes, change->dynamic };
    if (names->watcher.changed && change->change != RUNTIME_METHOD_EXISTS_AT_END)
        names->watcher.changed(names->watcher.user, change->process, &place, ends);
}

static void names_method(void *user, const struct runtime_method *method)
{
    struct named_process *named = user;
    struct runtime_names *names = named->names;
    if (method->change == RUNTIME_METHOD_EXISTS_AT_END &&
        !names_wants(names, named->process, method->addr, method->size_bytes))
        return;
    if (named->methods++ >= NAMES_METHODS_MAX)
        return;
    struct code_change change = told_code_change(names->code, named->process, RESOLVER_EVENTPIPE, method);
    /* what is told is of a while ago: what comes and goes can be another one by now */
    bool is_old = change.dynamic && names_are_known(names, named->process);
    names_tell_watcher(names, &change, is_old || method->change == RUNTIME_METHOD_UNLOADED);
    names_wait(names, &change);
}

static void names_module(void *user, const struct runtime_module *module)
{
    struct named_process *named = user;
    if (module->change != RUNTIME_METHOD_UNLOADED && named->modules++ < NAMES_MODULES_MAX)
        told_code_module(named->names->code, named->process, module);
}

static void names_event(void *user, const struct runtime_event *event)
{
    const struct named_process *named = user;
    uint32_t tid = thread_ids_find(named->threads, event->thread_id, named->names->drained_ns);
    runtime_log_add(named->names->b, named->process, tid, event, named->names->queue);
}

static uint64_t over(uint64_t count, uint64_t most)
{
    return count > most ? count - most : 0;
}

static void counts_add(struct runtime_session_counts *to, const struct runtime_session_counts *more)
{
    to->bytes += more->bytes;
    to->events += more->events;
    to->lost += more->lost;
    to->told += more->told;
    to->skipped += more->skipped;
    to->replaced += more->replaced;
}

struct runtime_session_counts runtime_names_counts(const struct runtime_names *names)
{
    struct runtime_session_counts all = names->ended;
    for (size_t i = 0; i < names->process_count; i++) {
        if (!names->processes[i]->session)
            continue;
        struct runtime_session_counts one = runtime_session_counts(names->processes[i]->session);
        counts_add(&all, &one);
    }
    return all;
}

bool runtime_names_stop_seen(const struct runtime_names *names)
{
    for (size_t i = 0; i < names->process_count; i++)
        if (names->processes[i]->session && runtime_session_stop_seen(names->processes[i]->session))
            return true;
    return names->stop_seen;
}

size_t runtime_names_polls(const struct runtime_names *names, struct pollfd *out, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < names->process_count && count + RUNTIME_SESSION_STREAMS <= max; i++)
        if (names->processes[i]->session)
            count += runtime_session_polls(names->processes[i]->session, &out[count]);
    return count;
}

static void names_end_session(struct runtime_names *names, struct named_process *named)
{
    struct runtime_session_counts counts = runtime_session_counts(named->session);
    uint64_t lost = counts.lost, now = clock_monotonic_ns();
    counts_add(&names->ended, &counts);
    names->stop_seen |= runtime_session_stop_seen(named->session);
    uint64_t dropped = over(named->methods, NAMES_METHODS_MAX) + over(named->modules, NAMES_MODULES_MAX);
    if (lost)
        trace_builder_loss(names->b, LOSS_RUNTIME, named->process, 0, now, lost);
    if (dropped)
        trace_builder_loss(names->b, LOSS_QUEUE, named->process, 0, now, dropped);
    runtime_log_end(names->b, &named->log);
    thread_ids_free(named->threads);
    runtime_session_close(named->session);
    named->threads = NULL;
    named->session = NULL;
}

/* One that began while we listened told of each method. Who becomes another program lists none at its end. */
static bool lacks_list(const struct runtime_names *names, const struct named_process *named)
{
    bool was_there = !names->b->trace.processes.rows[named->process].from_ns;
    return was_there && runtime_session_lists(named->session) && !runtime_session_complete(named->session);
}

bool runtime_names_drain(struct runtime_names *names)
{
    bool lagging = false;
    names->drained_ns = clock_monotonic_ns();
    for (size_t i = 0; i < names->process_count; i++) {
        struct named_process *named = names->processes[i];
        if (!named->session)
            continue;
        struct runtime_sink sink = {
            .user = named, .method = names_method, .module = names_module, .event = names_event
        };
        struct error err;
        if (!runtime_session_drain(named->session, &sink, &err)) {
            names_tell_broken(names, named->pid, &err);
            names_end_session(names, named);
        } else if (runtime_session_ended(named->session)) {
            if (lacks_list(names, named)) {
                error_set(&err, ERROR_TARGET, "it ended before it listed its methods");
                names_tell(names, named->pid, " from before the recording", &err);
            }
            names_end_session(names, named);
        } else {
            lagging = true;
        }
    }
    return lagging;
}

void runtime_names_apply(struct runtime_names *names, struct span item)
{
    struct code_change change;
    if (item.size != sizeof change)
        return;
    memcpy(&change, item.data, sizeof change);
    told_code_apply(names->code, &change);
}

void runtime_names_method(struct runtime_names *names, uint32_t process, uint8_t resolver,
                          const struct runtime_method *method)
{
    struct code_change change = told_code_change(names->code, process, resolver, method);
    names_tell_watcher(names, &change, method->change == RUNTIME_METHOD_UNLOADED);
    if (method->change == RUNTIME_METHOD_EXISTS_AT_END)
        told_code_apply(names->code, &change);
    else
        names_wait(names, &change);
}

bool runtime_names_listens(const struct runtime_names *names, uint32_t process)
{
    for (size_t i = 0; i < names->process_count; i++)
        if (names->processes[i]->session && names->processes[i]->process == process)
            return true;
    return false;
}

void runtime_names_spare(struct runtime_names *names)
{
    for (size_t i = 0; i < names->process_count; i++) {
        struct named_process *named = names->processes[i];
        named->spared = named->session && names_are_known(names, named->process);
        /* what it has sends one that lists, too, only when it is told to end */
        if (named->spared && (names->events || !runtime_session_lists(named->session)))
            runtime_session_stop(named->session, NULL);
    }
}

bool runtime_names_spares(const struct runtime_names *names)
{
    for (size_t i = 0; i < names->process_count; i++)
        if (names->processes[i]->session && names->processes[i]->spared)
            return true;
    return false;
}

void runtime_names_spare_end(struct runtime_names *names)
{
    for (size_t i = 0; i < names->process_count; i++)
        if (names->processes[i]->session && names->processes[i]->spared)
            names_end_session(names, names->processes[i]);
}

void runtime_names_stop(struct runtime_names *names)
{
    names_collect_wanted(names);
    for (size_t i = 0; i < names->process_count; i++) {
        struct named_process *named = names->processes[i];
        struct error err;
        if (!named->session || named->stopped)
            continue;
        named->stopped = true;
        if (!runtime_session_stop(named->session, &err)) {
            names_tell(names, named->pid, " from before the recording", &err);
            names_end_session(names, named);
        }
    }
}

bool runtime_names_running(const struct runtime_names *names)
{
    for (size_t i = 0; i < names->process_count; i++)
        if (names->processes[i]->session)
            return true;
    return false;
}

bool runtime_names_stopped(const struct runtime_names *names)
{
    for (size_t i = 0; i < names->process_count; i++)
        if (names->processes[i]->session && !proc_file_is_stopped((pid_t)names->processes[i]->pid))
            return false;
    return true;
}

uint64_t runtime_names_cpu_ticks(const struct runtime_names *names)
{
    uint64_t ticks = 0;
    for (size_t i = 0; i < names->process_count; i++) {
        struct proc_stat stat;
        if (names->processes[i]->session && proc_file_stat((pid_t)names->processes[i]->pid, &stat, NULL))
            ticks += stat.user_ticks + stat.system_ticks;
    }
    return ticks;
}

uint64_t runtime_names_bytes(const struct runtime_names *names)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < names->process_count; i++)
        if (names->processes[i]->session)
            bytes += runtime_session_counts(names->processes[i]->session).bytes;
    return bytes;
}

void runtime_names_give_up(struct runtime_names *names)
{
    for (size_t i = 0; i < names->process_count; i++) {
        struct named_process *named = names->processes[i];
        if (!named->session)
            continue;
        char text[160];
        snprintf(text, sizeof text,
                 "process %" PRIu32
                 " did not list its methods in time; some that were jitted before the recording have "
                 "no names",
                 named->pid);
        if (names->note)
            names->note(names->user, text);
        names_end_session(names, named);
    }
}

void runtime_names_wait(const struct runtime_names *names, int timeout_ms)
{
    struct pollfd polls[NAMES_SESSIONS_MAX * RUNTIME_SESSION_STREAMS];
    nfds_t count = runtime_names_polls(names, polls, ARRAY_LEN(polls));
    poll(polls, count, timeout_ms);
}

static void names_take(void *user, const struct time_item *item, struct span bytes)
{
    (void)item;
    runtime_names_apply(user, bytes);
}

void runtime_names_tell_all(struct runtime_names *names, unsigned patience_ms)
{
    enum { QUEUE_BYTES = 64 << 20, LOOK_MS = 50 };
    struct time_queue queue;
    time_queue_init(&queue, QUEUE_BYTES);
    uint64_t end_ns = clock_monotonic_ns() + patience_ms * 1000000ull;
    runtime_names_queue(names, &queue);
    runtime_names_stop(names);
    while (runtime_names_running(names) && clock_monotonic_ns() < end_ns) {
        runtime_names_wait(names, LOOK_MS);
        runtime_names_drain(names);
        time_queue_release(&queue, UINT64_MAX, names_take, names);
    }
    runtime_names_queue(names, NULL);
    told_code_put_modules(names->code);
    time_queue_done(&queue);
}
