#include "import/gc_stops.h"

#include <stdlib.h>

#include "base/mem.h"

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
    s->other = mem_grow_zeroed(s->other, &s->capacity, thread + (size_t)1, sizeof *s->other);
    if (kind == RUNTIME_EVENT_SUSPEND_BEGIN)
        s->other[thread] = is_for_other(payload);
    return !s->other[thread];
}

void gc_stops_done(struct gc_stops *s)
{
    free(s->other);
}
