/*
 * wakeups: what a recording sleeps at, and what it is woken by.
 */
#ifndef CLRPERF_COLLECT_WAKEUPS_H
#define CLRPERF_COLLECT_WAKEUPS_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/exit_watch.h"
#include "collect/perf_events.h"
#include "collect/runtime_names.h"

struct wakeups {
    struct pollfd *polls; /* of rings, chosen processes, the user, runtimes that call; then of streams */
    size_t rings, standing, own; /* rings end there, what ends by itself, and all but streams */
    size_t stop;                 /* the user's place */
};

/* Descriptors; borrowed, or -1. */
struct wakeup_sources {
    const struct perf_events *events;
    const struct exit_watch *exits;
    int stop_fd; /* readable: the user wants it to end */
    int port_fd; /* runtimes call there */
};

enum wakeup {
    WAKEUP_LOOK, /* it is time, a signal came, a ring is half full, a process ended, a runtime called */
    WAKEUP_STOP,
    WAKEUP_STREAM, /* only a runtime has sent something */
};

void wakeups_init(struct wakeups *w, const struct wakeup_sources *sources);
void wakeups_done(struct wakeups *w);
/* Sleeps until `until_ns` (CLOCK_MONOTONIC) or before. `runtimes`: whose streams wake us, or NULL. */
enum wakeup wakeups_sleep(struct wakeups *w, uint64_t until_ns, const struct runtime_names *runtimes);

#endif
