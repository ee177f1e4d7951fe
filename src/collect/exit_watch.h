/*
 * exit_watch: which processes of a recording have ended.
 *
 * The kernel tells when a process's main thread ends; the others may go on for as long as they like. Only
 * when the last of them has ended, so has the process.
 */
#ifndef CLRPERF_COLLECT_EXIT_WATCH_H
#define CLRPERF_COLLECT_EXIT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A process whose main thread has ended. */
struct exit_leaving {
    uint32_t process; /* row */
    uint32_t pid;
    uint64_t start_ticks; /* 0: not known */
    uint64_t time_ns;     /* of the last thread that ended so far */
};

struct exit_watch {
    int *chosen; /* pidfds; -1: we would not notice its end */
    size_t chosen_count;
    struct exit_leaving *leaving;
    size_t leaving_count, leaving_capacity;
};

/*
 * Watches the processes that were chosen. `start_ticks`: of each as it was chosen, or NULL. Fails with
 * ERROR_TARGET when another process has the number of one. In either case the caller ends with
 * exit_watch_done().
 */
bool exit_watch_chosen(struct exit_watch *x, const pid_t *pids, const uint64_t *start_ticks, size_t count,
                       struct error *err);
void exit_watch_done(struct exit_watch *x);
/* Whether all that were chosen have ended; also when there were none, or all were gone before. */
bool exit_watch_all_ended(const struct exit_watch *x);
/* The process's main thread has ended, or, of one that is leaving, another thread. */
void exit_watch_main_thread(struct exit_watch *x, const struct exit_leaving *one);
void exit_watch_thread(struct exit_watch *x, uint32_t process, uint64_t time_ns);
/* Takes one that was leaving and has ended; false when there is none now. Looks at /proc. */
bool exit_watch_take_ended(struct exit_watch *x, struct exit_leaving *out);

#endif
