#include "collect/wakeups.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

enum { STREAMS_MAX = 256 }; /* that are waited for */

#define MS_NS UINT64_C(1000000)

static void add(struct wakeups *w, int fd)
{
    w->polls[w->own++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

void wakeups_init(struct wakeups *w, const struct wakeup_sources *sources)
{
    const struct perf_events *events = sources->events;
    const struct exit_watch *exits = sources->exits;
    *w = (struct wakeups){ 0 };
    w->polls = mem_alloc(events->ring_count + exits->chosen_count + 2 + STREAMS_MAX, sizeof *w->polls);
    for (size_t i = 0; i < events->ring_count; i++)
        if (events->rings[i].page)
            add(w, events->ring_fds[i]);
    w->rings = w->own;
    for (size_t i = 0; i < exits->chosen_count; i++)
        add(w, exits->chosen[i]);
    w->standing = w->stop = w->own;
    add(w, sources->stop_fd);
    add(w, sources->port_fd);
}

void wakeups_done(struct wakeups *w)
{
    free(w->polls);
    w->polls = NULL;
}

/* Rings whose own thread is gone and processes that have ended would wake us for ever. */
static void drop_ended(struct wakeups *w)
{
    for (size_t i = 0; i < w->standing; i++)
        if (w->polls[i].revents & (i < w->rings ? POLLHUP | POLLERR : POLLIN))
            w->polls[i].fd = -1;
}

enum wakeup wakeups_sleep(struct wakeups *w, uint64_t until_ns, const struct runtime_names *runtimes)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (now_ns >= until_ns)
        return WAKEUP_LOOK;
    size_t streams = runtimes ? runtime_names_polls(runtimes, &w->polls[w->own], STREAMS_MAX) : 0;
    if (poll(w->polls, w->own + streams, (int)((until_ns - now_ns) / MS_NS) + 1) <= 0)
        return WAKEUP_LOOK;
    bool ours = false;
    for (size_t i = 0; i < w->own; i++)
        ours |= w->polls[i].revents != 0;
    drop_ended(w);
    return w->polls[w->stop].revents ? WAKEUP_STOP : ours ? WAKEUP_LOOK : WAKEUP_STREAM;
}
