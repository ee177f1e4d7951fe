/*
 * thrown_before: which exceptions, by type and message, were thrown by who made them.
 *
 * An await of a task that failed throws the task's exception object again, by ExceptionDispatchInfo.Throw, at
 * each level of async methods, and the runtime does not say so. A task can be given one that never was
 * thrown: then nobody but awaits threw one of that type and message, and the innermost of them counts. The
 * others are known by what comes next on the thread: the method around the one that failed awaits it, or goes
 * on where that one told its task to have failed. One that goes on on another thread counts again. What is
 * passed on is so soon: of more than THROWN_BEFORE_MAX kinds the oldest are forgotten.
 */
#ifndef CLRPERF_ANALYSE_THROWN_BEFORE_H
#define CLRPERF_ANALYSE_THROWN_BEFORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/event_stacks.h"
#include "base/cursor.h"
#include "base/id_map.h"

enum { THROWN_BEFORE_MAX = 1 << 16 };

/* Zeroed: none. */
struct thrown_before {
    struct thrown_kinds {
        struct id_map ids; /* by hash: one more than the index in `hashes` */
        uint64_t *hashes;
        size_t count, capacity;
    } kinds[2]; /* the latest, and those before */
    struct thrown_await {
        uint64_t kind; /* what an await threw last, while nobody else threw such; 0: nothing */
        uint32_t site; /* who awaits; a node */
    } * awaits;        /* by thread of the trace */
    size_t await_capacity;
};

void thrown_before_done(struct thrown_before *t);
/* One kind, of one process, for those below: what has 64 bits in common is the same. */
uint64_t thrown_before_kind(uint32_t process, struct span type, struct span message);
bool thrown_before_has(const struct thrown_before *t, uint64_t kind);
/* Who made it threw one. */
void thrown_before_add(struct thrown_before *t, uint64_t kind);
/*
 * Whether an exception that a thread threw at `node` of the same `stacks` each time (0: not known where) was
 * passed on by an await; else who threw it is remembered to have made it.
 */
bool thrown_before_passed_on(struct thrown_before *t, uint64_t kind, const struct event_stacks *stacks,
                             uint32_t node, uint32_t thread);

#endif
