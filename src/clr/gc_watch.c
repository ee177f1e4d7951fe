#include "clr/gc_watch.h"

#include <string.h>

#include "clr/gc_events.h"

static struct gc_watch_open *find(struct gc_watch *w, uint32_t number)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->open[i].gc.number == number)
            return &w->open[i];
    return NULL;
}

static void drop(struct gc_watch *w, const struct gc_watch_open *one)
{
    unsigned at = (unsigned)(one - w->open);
    memmove(&w->open[at], &w->open[at + 1], (--w->count - at) * sizeof *w->open);
}

static void start(struct gc_watch *w, uint64_t time_ns, struct span payload)
{
    struct runtime_gc_start_event e;
    if (!runtime_gc_start_read(payload, &e, NULL))
        return;
    if (w->count == GC_WATCH_OPEN_MAX) {
        w->dropped++;
        drop(w, &w->open[0]);
    }
    w->open[w->count++] = (struct gc_watch_open){
        .gc = { e.number, e.generation, e.reason, (uint8_t)e.type, time_ns, 0 },
        .in_pause = w->paused,
    };
}

static bool close_one(struct gc_watch *w, struct gc_watch_open *one, struct gc_watch_one *out)
{
    *out = one->gc;
    drop(w, one);
    return true;
}

/* One that ended in a pause is over with the pause. */
static bool end(struct gc_watch *w, struct span payload, struct gc_watch_one *out)
{
    struct runtime_gc_end_event e;
    struct gc_watch_open *one = runtime_gc_end_read(payload, &e, NULL) ? find(w, e.number) : NULL;
    if (!one)
        return false;
    one->ended = true;
    return !w->paused && close_one(w, one, out);
}

/* The pause is that of what started in it; else of the one in the background. */
static bool restart(struct gc_watch *w, uint64_t time_ns, struct gc_watch_one *out)
{
    if (!w->paused)
        return false;
    uint64_t pause_ns = time_ns - w->paused_ns;
    struct gc_watch_open *whose = NULL, *over = NULL;
    w->paused = false;
    for (unsigned i = 0; i < w->count; i++)
        if (w->open[i].in_pause || w->open[i].gc.type == RUNTIME_GC_BACKGROUND)
            whose = !whose || w->open[i].in_pause ? &w->open[i] : whose;
    if (whose)
        whose->gc.pause_ns += pause_ns;
    for (unsigned i = 0; i < w->count; i++) {
        w->open[i].in_pause = false;
        if (w->open[i].ended)
            over = &w->open[i];
    }
    return over && close_one(w, over, out);
}

bool gc_watch_take(struct gc_watch *w, uint32_t event_id, uint64_t time_ns, struct span payload,
                   struct gc_watch_one *out)
{
    uint32_t reason;
    switch (event_id) {
    case GC_EVENT_START:
        start(w, time_ns, payload);
        return false;
    case GC_EVENT_END:
        return end(w, payload, out);
    case GC_EVENT_RESTART_END:
        return restart(w, time_ns, out);
    case GC_EVENT_SUSPEND_BEGIN:
        if (runtime_suspend_begin_read(payload, &reason, NULL) &&
            (reason == RUNTIME_SUSPEND_GC || reason == RUNTIME_SUSPEND_GC_PREP)) {
            w->paused = true;
            w->paused_ns = time_ns;
        }
        return false;
    default:
        return false;
    }
}
