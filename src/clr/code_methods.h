/*
 * code_methods: the methods that pieces of jitted code are of, each looked at once however many versions of
 * its code there are.
 *
 * Each kind of pointer is followed for all methods at once, so that the target is read in a few large rounds:
 * a read of one page costs as much as the way there and back, and a program has ten thousand methods.
 */
#ifndef CLRPERF_CLR_CODE_METHODS_H
#define CLRPERF_CLR_CODE_METHODS_H

#include "clr/code_heap.h"
#include "clr/method_desc.h"

/* A piece of code with the record of its method. */
struct surveyed_code {
    struct code_body body;
    struct method_desc method;
    bool described; /* the record makes sense */
    bool has_tier;  /* the runtime notes one: see method_desc_tier() and call_counting.h */
    uint32_t tier;
    const struct code_range *range; /* where it lies; of the survey */
    uint32_t shared;                /* number, from 1, of a method that other pieces are of, too; else 0 */
};

/*
 * Fills in what follows from the bodies, which are all that is known; with `tiers` those too. Returns how
 * many methods are shared.
 */
uint32_t code_methods_describe(struct memory_pages *pages, const struct runtime_layout *layout,
                               struct surveyed_code *list, size_t count, bool tiers);
/* The tier of one piece of code, whose record was read. */
void code_methods_find_tier(struct memory_pages *pages, const struct runtime_layout *layout,
                            struct surveyed_code *code);

#endif
