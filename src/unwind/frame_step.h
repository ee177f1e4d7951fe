/*
 * frame_step: what tells how a frame is left: the tables of its image, its UNWIND_INFO, its code, or nothing.
 */
#ifndef CLRPERF_UNWIND_FRAME_STEP_H
#define CLRPERF_UNWIND_FRAME_STEP_H

#include "unwind/unwind_run.h"

/* Of the leaf, or of what a signal interrupted: it can be anywhere in its function. */
struct frame_step frame_step_exact(const struct unwind_run *r, const struct unwind_place *at);
/* Of a caller, `ip` being where it goes on, of which nothing is remembered yet. */
struct frame_step frame_step_caller_new(struct unwinder *u, uint64_t ip);
/* Of a caller of which no table tells; `known` is what frame_step_caller() said. */
struct frame_step frame_step_caller_flow(const struct unwind_run *r, const struct unwind_place *at,
                                         const struct frame_step *known);
/* Where it is remembered, or could be. */
static inline struct cached_step *frame_step_slot(const struct unwinder *u, uint64_t ip)
{
    return &u->cache[(ip * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - u->cache_bits)];
}

/* Of a caller, `ip` being where it goes on. */
static inline struct frame_step frame_step_caller(struct unwinder *u, uint64_t ip)
{
    const struct cached_step *cached = frame_step_slot(u, ip);
    if (cached->ip == ip && cached->generation == u->generation)
        return (struct frame_step){ (enum frame_step_kind)cached->kind, cached->rule, cached->no_call };
    return frame_step_caller_new(u, ip);
}

#endif
