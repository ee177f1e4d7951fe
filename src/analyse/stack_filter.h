/*
 * stack_filter: which stacks a user wants to see, by regular expressions for the names of their frames.
 *
 * A stack is wanted when each pattern to include matches one of its frames, and no pattern to exclude does.
 */
#ifndef CLRPERF_ANALYSE_STACK_FILTER_H
#define CLRPERF_ANALYSE_STACK_FILTER_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { STACK_FILTER_PATTERNS_MAX = 64 };

struct stack_filter {
    regex_t patterns[STACK_FILTER_PATTERNS_MAX];
    size_t count;
    uint64_t include, exclude; /* which of them, as bits */
};

/* Both lists end with NULL, or are NULL. ERROR_USAGE names a pattern that is none; nothing is to be undone
 * then. */
bool stack_filter_init(struct stack_filter *filter, const char *const *include, const char *const *exclude,
                       struct error *err);
void stack_filter_done(struct stack_filter *filter);

/* The patterns that match one frame, as bits. */
uint64_t stack_filter_match(const struct stack_filter *filter, const char *name);
/* `matched`: the bits of all frames of a stack, or-ed. */
bool stack_filter_wants(const struct stack_filter *filter, uint64_t matched);

#endif
