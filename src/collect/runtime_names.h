/*
 * runtime_names: keeps a trace's methods up to date from what the .NET runtimes of the watched processes
 * tell.
 *
 * Sessions are opened one a process. What they tell goes through the recorder's queue, so that code
 * appears and ends in step with the samples. Events that come in the same sessions go to runtime_log.
 */
#ifndef CLRPERF_COLLECT_RUNTIME_NAMES_H
#define CLRPERF_COLLECT_RUNTIME_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/time_queue.h"
#include "collect/queue_item.h"
#include "collect/runtime_session.h"
#include "collect/told_code.h"
#include "trace/builder.h"

struct runtime_names;

/* Where a method's code lies. */
struct method_place {
    uint64_t addr, size_bytes;
    bool fleeting; /* can be freed at any time */
};

/* Told of each method as soon as it is heard of. */
typedef void method_change_fn(void *user, uint32_t process, const struct method_place *method, bool ends);

/*
 * `note` is told, once a process, why its methods will have no names, or, when `events` are what is wanted,
 * why there are none; may be NULL. Off when not `enabled`.
 */
struct runtime_names *runtime_names_new(struct trace_builder *b, bool enabled, bool events,
                                        void (*note)(void *user, const char *text), void *user);
void runtime_names_free(struct runtime_names *names);
/* What they told of code so far, to which others may add. */
struct told_code *runtime_names_code(struct runtime_names *names);
/* Who else has to do with methods; functions may be NULL. */
struct method_watcher {
    /* told of every method from now on; `ends`, too, when what is there now is better asked of the memory */
    method_change_fn *changed;
    /* whether a process's methods can be told without its runtime: then it is not asked to list them, and
       nothing is missing when it does not answer */
    bool (*is_known)(void *user, uint32_t process);
    void *user;
};
void runtime_names_watch(struct runtime_names *names, const struct method_watcher *watcher);
/*
 * Where methods wait for their turn from now on, in which runtime_names_apply() takes them, and events with
 * them. NULL: methods are applied at once, and events are not wanted.
 */
void runtime_names_queue(struct runtime_names *names, struct time_queue *queue);
/*
 * Opens a session with the process's runtime. False when another try may do better: the process has no
 * runtime (yet), then without an error, or one that did not answer. Who has no right to ask is refused.
 */
bool runtime_names_attach(struct runtime_names *names, uint32_t pid,
                          const struct runtime_session_options *options, struct error *err);
/* Takes over a session that is open already; `process`: its row. */
void runtime_names_add(struct runtime_names *names, uint32_t process, uint32_t pid,
                       struct runtime_session *session);
/* Something else than its session tells of a process's method. `resolver`: enum resolver. */
void runtime_names_method(struct runtime_names *names, uint32_t process, uint8_t resolver,
                          const struct runtime_method *method);
/* Whether a session tells of the process's methods as they come and go. */
bool runtime_names_listens(const struct runtime_names *names, uint32_t process);
/* No session could be opened, and none will be: `note` is told why, once a process. */
void runtime_names_refused(struct runtime_names *names, uint32_t pid, const struct error *err);
/* Why the first of those was, or NULL when there was none. */
const struct error *runtime_names_refusal(const struct runtime_names *names);
size_t runtime_names_refused_count(const struct runtime_names *names);
/* Takes what has come, without waiting. Whether any session may still be behind. */
bool runtime_names_drain(struct runtime_names *names);
/* One item of the queue's that is QUEUE_CODE, in its turn. */
void runtime_names_apply(struct runtime_names *names, struct span item);
/*
 * Asks runtimes of processes whose methods are known from elsewhere to end, without their lists, which takes
 * them up to 100 ms, unless they were asked for one with the events that are wanted; whether one still has
 * something to tell; and ends their sessions in any case.
 */
void runtime_names_spare(struct runtime_names *names);
bool runtime_names_spares(const struct runtime_names *names);
void runtime_names_spare_end(struct runtime_names *names);
/* Asks every runtime for the methods it has, and to end. All samples are in the trace by now. */
void runtime_names_stop(struct runtime_names *names);
bool runtime_names_running(const struct runtime_names *names);
/* Whether nothing more can come for now: every process of a running session is stopped (SIGSTOP, a debugger).
 */
bool runtime_names_stopped(const struct runtime_names *names);
/* CPU time of all processes of running sessions, in USER_HZ: grows while a runtime makes its list. */
uint64_t runtime_names_cpu_ticks(const struct runtime_names *names);
/* A runtime told of the event that ends the recording. */
bool runtime_names_stop_seen(const struct runtime_names *names);
/* What all runtimes told, those that ended too. */
struct runtime_session_counts runtime_names_counts(const struct runtime_names *names);
/* Sets what becomes readable when there is something to drain, at most `max`. Returns how many. */
size_t runtime_names_polls(const struct runtime_names *names, struct pollfd *out, size_t max);
/* What all runtimes have sent so far: grows while they are at it. */
uint64_t runtime_names_bytes(const struct runtime_names *names);
/* Drops the sessions that still run; `note` is told that their lists are incomplete. */
void runtime_names_give_up(struct runtime_names *names);
/* Sleeps until a session has something, at most so long. */
void runtime_names_wait(const struct runtime_names *names, int timeout_ms);
/* All of the end in one call: stops the sessions and takes what they tell, for at most `patience_ms`. */
void runtime_names_tell_all(struct runtime_names *names, unsigned patience_ms);

#endif
