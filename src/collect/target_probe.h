/*
 * target_probe: looks at a target from a child process, which is killed when it takes too long.
 *
 * A file of a target may lie on a file system that never answers, and so may the pages its arguments
 * are in: whoever reads them hangs. The child also takes the target's user for opening its files, so that it
 * reaches nothing that the target could not, and what it reads is parsed there.
 */
#ifndef CLRPERF_COLLECT_TARGET_PROBE_H
#define CLRPERF_COLLECT_TARGET_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "collect/target.h"

enum { TARGET_PROBE_MS = 2000 };

typedef void target_look_fn(struct target *t);

/* A look that goes on. */
struct target_probe {
    pid_t child;
    int fd; /* owned: what it finds comes here */
    uint64_t end_ns;
};

/* Runs `look` on a copy of *t in a child. True: the look is to be finished, or dropped. */
bool target_probe_begin(struct target *t, target_look_fn *look, unsigned timeout_ms, struct target_probe *out,
                        struct error *err);
/*
 * Takes over what it found. False when the child did not answer within `timeout_ms` of the beginning, or
 * ended without answer: *t is untouched then.
 */
bool target_probe_finish(struct target_probe *probe, struct target *t, struct error *err);
void target_probe_drop(struct target_probe *probe);

/* What the two send each other: everything but pid, pidfd and start time. */
void target_pack(const struct target *t, struct buffer *out);
bool target_unpack(struct span bytes, struct target *t, struct error *err);

#endif
