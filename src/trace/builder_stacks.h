/*
 * builder_stacks: how a trace_builder makes stacks of callchains; what builder.h says of samples and stacks.
 */
#ifndef CLRPERF_TRACE_BUILDER_STACKS_H
#define CLRPERF_TRACE_BUILDER_STACKS_H

#include "trace/builder.h"

/* The kernel's addresses mean the same in every process: the first number of trace_builder.spaces. */
enum { BUILDER_KERNEL_SPACE = 1 };

/* Empty, for so many chains; the caller frees. *out_shift: as trace_builder.memo_shift. */
struct location_memo *location_memo_new(size_t chains, unsigned *out_shift);

#endif
