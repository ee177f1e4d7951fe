/*
 * folded: stacks as stackcollapse tools print them: "root;caller;leaf 12", one stack and its count a line.
 *
 * De facto; defined by stackcollapse-perf.pl and flamegraph.pl of FlameGraph. A frame may end in an
 * annotation of its kind: _[k] kernel, _[j] jitted, _[i] inlined, _[n] native.
 */
#ifndef CLRPERF_READ_FOLDED_H
#define CLRPERF_READ_FOLDED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

struct folded_line {
    struct span stack; /* borrowed; frames with ';' between, root first */
    uint64_t count;    /* at most UINT64_MAX */
    bool is_rounded;   /* it had a fraction */
};

/* False for a line that is not of this form. */
bool folded_read_line(struct span line, struct folded_line *out);
/*
 * Takes the first frame off `stack`. *out_kind is the letter of its annotation, or 0. False when there is
 * none left.
 */
bool folded_next_frame(struct span *stack, struct span *out_name, char *out_kind);
/* False for comments and empty lines, which are passed over. */
bool folded_is_stack(struct span line);

/* What the first 20 lines of a text are that are neither. */
struct folded_head {
    unsigned good, bad;
    bool has_callers;   /* a good one has more than one frame */
    uint64_t first_bad; /* the number of its line in the text, from 1; 0: none is bad */
};

struct folded_head folded_look(struct span head);
/*
 * Does a text begin like this? Somebody may have put a line of another kind between, as tools print that are
 * part of a pipe: half of the lines have to be folded stacks, and some of more than one frame where not all
 * are.
 */
bool folded_recognises(struct span head);

#endif
