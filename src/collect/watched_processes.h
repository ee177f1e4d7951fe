/*
 * watched_processes: the processes of a recording, each from when it is first seen until its end.
 *
 * Tells the trace what each is and has mapped, and sees to it that its runtime is listened to: of those that
 * were there before us at once, of those that start meanwhile by collect/newcomers, of those that wait at
 * their start when they call.
 */
#ifndef CLRPERF_COLLECT_WATCHED_PROCESSES_H
#define CLRPERF_COLLECT_WATCHED_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "collect/diagnostic_port.h"
#include "collect/exit_watch.h"
#include "collect/memory_names.h"
#include "collect/newcomers.h"
#include "collect/process_filter.h"
#include "collect/runtime_names.h"
#include "collect/target_files.h"
#include "collect/target_list.h"
#include "read/perf_record.h"
#include "trace/builder.h"

struct watched_processes_options {
    struct trace_builder *b;
    struct runtime_names *runtimes;
    const struct process_filter *filter;
    struct runtime_session_options ask;         /* of every runtime */
    bool runtime;                               /* ask runtimes at all */
    bool events;                                /* that are wanted, besides methods */
    struct diagnostic_port *port;               /* that runtimes call when they start, or NULL */
    bool resume;                                /* let them go on once they are listened to */
    bool port_is_ours;                          /* only the command that is recorded knows it */
    const struct target_list *known;            /* what was looked at a moment ago; or NULL */
    void (*note)(void *user, const char *text); /* or NULL */
    void *user;
};

/* One whose runtime did not answer when the recording began. */
struct deaf_process {
    uint32_t process, pid;
    struct error why;
};

/* All in the options is borrowed. */
struct watched_processes {
    struct watched_processes_options options;
    struct memory_names *memory; /* borrowed; set before any process is met */
    struct target_files files;
    struct newcomers *newcomers;
    struct exit_watch exits;
    struct deaf_process *deaf;
    size_t deaf_count, deaf_capacity;
    bool missed;      /* newcomers, and said so */
    uint64_t execs;   /* processes that became another program: two rows each */
    size_t late;      /* that were listened to a while after they had started, or had called, */
    uint64_t late_ns; /* and the longest that was */
};

void watched_processes_init(struct watched_processes *w, const struct watched_processes_options *options);
void watched_processes_done(struct watched_processes *w);

/* One that was there before us: what it has mapped is to be read once changes are told of. `attach`: its
 * runtime is asked, and waited for a while. */
void watched_processes_meet(struct watched_processes *w, uint32_t pid, bool attach);
/* One of many that were there before us and have a runtime: looked at before the recording begins, */
void watched_processes_present(struct watched_processes *w, uint32_t pid);
/* and asked while it runs, so that nothing that it tells is from before. */
void watched_processes_ask_present(struct watched_processes *w, uint32_t pid);
/* The row of a process, which is looked at when it is seen for the first time. */
uint32_t watched_processes_row(struct watched_processes *w, uint32_t pid, uint64_t time_ns);
/* What the kernel told of processes; of those that are not watched nothing is kept. */
void watched_processes_fork(struct watched_processes *w, const struct perf_task *task);
void watched_processes_exit(struct watched_processes *w, const struct perf_task *task);
void watched_processes_exec(struct watched_processes *w, uint32_t pid, struct span name, uint64_t time_ns);
/*
 * A runtime that waits at its start: what the kernel told of it until now is in the trace. It goes on once it
 * is listened to.
 */
void watched_processes_called(struct watched_processes *w, const struct diagnostic_caller *caller);
/* To be called now and then: takes what was found out of newcomers, and who has ended. */
void watched_processes_look(struct watched_processes *w);
/* A last look at those that started just now, for so long at most: they may still tell what they have. Of
 * those that never answered is told now. */
void watched_processes_finish(struct watched_processes *w, unsigned patience_ms);

#endif
