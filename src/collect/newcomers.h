/*
 * newcomers: processes that appear while a recording runs, until it is known what they are.
 *
 * Whether a process has a .NET runtime shows a while after its start. A look takes a helper process and a
 * talk with the runtime, which may answer late or never, and rings would overflow meanwhile: so a thread of
 * its own looks, after longer and longer waits, and the recorder takes what was found between two drains.
 */
#ifndef CLRPERF_COLLECT_NEWCOMERS_H
#define CLRPERF_COLLECT_NEWCOMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/runtime_session.h"
#include "collect/target.h"

/* What a look brought. */
struct newcomer_found {
    uint32_t process; /* as it was added */
    struct target target;
    struct runtime_session *session; /* owned; NULL when it has no runtime (yet) */
    uint64_t deaf_ns;                /* of NEWCOMER_CALLED: how long it ran and nobody listened; else 0 */
    bool refused;                    /* it has one that gives no session, and `err` says why */
    struct error err;
};

enum newcomer_kind {
    NEWCOMER_SEEN,  /* it was there before: one look is enough when it is older than runtimes take to start */
    NEWCOMER_KNOWN, /* so was this one; its methods are known without its runtime, which nobody waits for */
    NEWCOMER_DEAF,  /* so was this one; its runtime did not answer, and is not waited for at the end */
    NEWCOMER_FORKED, /* most become another program at once: it is given a moment */
    NEWCOMER_EXECED,
    NEWCOMER_CALLS,  /* so did this one; its runtime calls when it starts, and is asked when it has not */
    NEWCOMER_CALLED, /* it has, when it could not be listened to yet; what it has by then it need not list */
};

struct newcomers;

/*
 * `ask`: open sessions with .NET runtimes, for what it says (borrowed); how long to wait for them is not its
 * to say. NULL: each process is looked at once.
 */
struct newcomers *newcomers_new(const struct runtime_session_options *ask);
/* NULL is fine. What was not taken is dropped. */
void newcomers_free(struct newcomers *n);
/*
 * `process` is the caller's name for it; a pid that is there already is looked at anew under the new name.
 * False when it will not be looked at: too many wait, or there is no thread to be had.
 */
bool newcomers_add(struct newcomers *n, uint32_t process, uint32_t pid, enum newcomer_kind kind);
/* It has ended. What was found before can still be taken. */
void newcomers_remove(struct newcomers *n, uint32_t pid);
/*
 * The caller sees to it itself from now on. Waits a moment for a look at it that is under way and asks its
 * runtime, so that the session that this opens can be taken: to end it later would end the counters and
 * metrics of another one that asked for the same.
 */
void newcomers_hand_over(struct newcomers *n, uint32_t pid);
/* Takes one thing found; false when there is none now. The caller ends *out with newcomer_found_done(). */
bool newcomers_take(struct newcomers *n, struct newcomer_found *out);
void newcomer_found_done(struct newcomer_found *found);
/*
 * A last look at whoever has a runtime without session, or was not looked at. Returns how many were not
 * through with it after `patience_ms`; they are given up. Those of NEWCOMER_KNOWN and _DEAF are at once.
 */
size_t newcomers_finish(struct newcomers *n, unsigned patience_ms);

#endif
