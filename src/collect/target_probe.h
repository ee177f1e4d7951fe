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

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "collect/target.h"

enum { TARGET_PROBE_MS = 2000 };

typedef void target_look_fn(struct target *t);

/*
 * Runs `look` on a copy of *t in a child and takes over what it found. False when the child did not
 * answer in `timeout_ms`, or ended without answer: *t is untouched then.
 */
bool target_probe(struct target *t, target_look_fn *look, unsigned timeout_ms, struct error *err);

/* What the two send each other: everything but pid, pidfd and start time. */
void target_pack(const struct target *t, struct buffer *out);
bool target_unpack(struct span bytes, struct target *t, struct error *err);

#endif
