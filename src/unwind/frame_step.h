/*
 * frame_step: what tells how a frame is left: the tables of its image, its UNWIND_INFO, its code, or nothing.
 */
#ifndef CLRPERF_UNWIND_FRAME_STEP_H
#define CLRPERF_UNWIND_FRAME_STEP_H

#include "unwind/unwind_run.h"

/* Of the leaf, or of what a signal interrupted: it can be anywhere in its function. */
struct frame_step frame_step_exact(const struct unwind_run *r, const struct unwind_place *at);
/* Of a caller, `ip` being where it goes on. Remembered, unless nothing is known. */
struct frame_step frame_step_caller(struct unwinder *u, uint64_t ip);
/* Of a caller of which no table tells; `known` is what frame_step_caller() said. */
struct frame_step frame_step_caller_flow(const struct unwind_run *r, const struct unwind_place *at,
                                         const struct frame_step *known);
/* Has what is remembered of a caller fetched. */
void frame_step_expect(const struct unwinder *u, uint64_t ip);

#endif
