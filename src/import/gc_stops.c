#include "import/gc_stops.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool *latest_is_other(struct gc_stops *s, uint32_t thread)
{
    if (thread >= s->count) {
        size_t was = s->count;
        s->count = 2 * (thread + (size_t)1);
        s->other = mem_resize(s->other, s->count, sizeof *s->other);
        memset(s->other + was, 0, s->count - was);
    }
    return &s->other[thread];
}

static bool is_for_other(struct span payload)
{
    uint32_t reason;
    return runtime_suspend_begin_read(payload, &reason, NULL) && reason != RUNTIME_SUSPEND_GC &&
           reason != RUNTIME_SUSPEND_GC_PREP;
}

bool gc_stops_wants(struct gc_stops *s, enum runtime_event_kind kind, uint32_t thread, struct span payload)
{
    if (kind < RUNTIME_EVENT_SUSPEND_BEGIN || kind > RUNTIME_EVENT_RESTART_END)
        return true;
    bool *other = latest_is_other(s, thread);
    if (kind == RUNTIME_EVENT_SUSPEND_BEGIN)
        *other = is_for_other(payload);
    return !*other;
}

void gc_stops_done(struct gc_stops *s)
{
    free(s->other);
}
