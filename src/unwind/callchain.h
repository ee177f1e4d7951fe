/*
 * callchain: which frames of a chain that the kernel found by frame pointers are to be believed.
 *
 * For samples that carry nothing else; those with registers and stack bytes are unwound, see
 * unwind/unwinder.h.
 */
#ifndef CLRPERF_UNWIND_CALLCHAIN_H
#define CLRPERF_UNWIND_CALLCHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

enum callchain_end {
    CALLCHAIN_WHOLE,     /* it reaches the thread's first frame */
    CALLCHAIN_TRUNCATED, /* there were more frames than it can hold */
    CALLCHAIN_BROKEN,    /* it leads nowhere */
};

/* A user-space callchain, leaf first, as captured. Spans are borrowed and may be empty. */
struct callchain {
    const uint64_t *frames;
    size_t count;
    bool is_cut; /* the source had no room for the frames at the root's end */
};

/* What the caller knows of the process's memory. */
struct callchain_space {
    bool (*is_code)(void *user, uint64_t addr); /* something executable is mapped there */
    bool (*is_root)(void *user, uint64_t addr); /* a thread's first frame can be there */
    void *user;
};

/*
 * Keeps the frames that make sense: a frame pointer that was used for something else leads to an address
 * without code, and nothing behind it is a caller. Returns how many frames stay; *out_end says how the chain
 * ended.
 */
size_t callchain_frames(const struct callchain *chain, const struct callchain_space *space,
                        enum callchain_end *out_end);

#endif
