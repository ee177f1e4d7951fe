/*
 * nettrace_places: where the methods of a written event stream are said to be.
 *
 * Each function has a place of its own, native and kernel functions too, so that readers that know methods
 * only show all names: one for each way it was compiled and named (clr/kept_rows.h).
 */
#ifndef CLRPERF_RENDER_NETTRACE_PLACES_H
#define CLRPERF_RENDER_NETTRACE_PLACES_H

#include "base/id_map.h"
#include "render/nettrace_stream.h"
#include "trace/trace.h"

struct nettrace_places {
    const struct trace *t;
    struct nettrace_place *rows; /* those below STACK_ROOTS are roots of stacks */
    size_t count, capacity;
    uint32_t *of_location; /* 0: not asked for yet */
    struct id_map ids;
    bool ends[STACK_ROOTS]; /* that were asked for */
};

/* `t` stays borrowed. */
void nettrace_places_init(struct nettrace_places *p, const struct trace *t);
void nettrace_places_done(struct nettrace_places *p);
/* The address of a frame; its own where it has no name. */
uint64_t nettrace_places_frame(struct nettrace_places *p, uint32_t location);
/* The frame below all others of a stack that was cut. */
uint64_t nettrace_places_end(struct nettrace_places *p, enum stack_end end);
/* Tells of all methods that were asked for, and their modules. */
void nettrace_places_tell(const struct nettrace_places *p, struct nettrace_stream *s, uint64_t time_ns);

#endif
