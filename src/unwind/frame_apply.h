/*
 * frame_apply: where a frame's caller is, by a rule of its function or by its frame pointer.
 */
#ifndef CLRPERF_UNWIND_FRAME_APPLY_H
#define CLRPERF_UNWIND_FRAME_APPLY_H

#include "unwind/unwind_run.h"

/* Fails where the rule leads to what cannot be. */
enum unwind_outcome frame_apply_rule(const struct unwind_run *r, const struct frame_rule *rule,
                                     const struct unwind_place *at, struct unwind_place *out);
enum unwind_outcome frame_apply_pointer(const struct unwind_run *r, const struct unwind_place *at,
                                        struct unwind_place *out);

#endif
