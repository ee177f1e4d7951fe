/*
 * call_neighbours: who calls a function, or whom it calls, and how much of a profile's weight that is.
 */
#ifndef CLRPERF_ANALYSE_CALL_NEIGHBOURS_H
#define CLRPERF_ANALYSE_CALL_NEIGHBOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/hot.h"

/* A function that is meant. Names are the profile's. */
struct call_function {
    const char *name, *module;
    uint32_t frame; /* one of it: with lines it has several */
    uint64_t total; /* weight of the samples it is in */
};

struct call_neighbours {
    struct call_function *functions; /* the heaviest first; never none */
    size_t function_count;
    bool exact; /* they have the very name that was asked for */
    /* As a row of a hot table: of all of them together. What they do not share is NULL or 0. */
    struct hot_row focus;
    /*
     * Its callers or callees, the heaviest first; "[root]" and "[self]" stand for none. A sample counts once
     * for each that is next to the function anywhere in its stack: without recursion (and of one function)
     * the rows add up to the focus, with it to more. `samples` go with `total` here; `self` says nothing.
     */
    struct hot_table table;
};

/*
 * `asked`: the name of a function, or a part of it when none has that very name. False when no function is
 * meant. On success the caller ends with call_neighbours_done(); `p` must live as long.
 */
bool call_neighbours_build(const struct profile *p, const char *asked, bool callers,
                           struct call_neighbours *out);
void call_neighbours_done(struct call_neighbours *n);

#endif
