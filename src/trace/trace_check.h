/*
 * trace_check: makes a trace that was read from a file one that can be relied on.
 */
#ifndef CLRPERF_TRACE_TRACE_CHECK_H
#define CLRPERF_TRACE_TRACE_CHECK_H

#include "trace/trace.h"

/*
 * After it every id names a row that exists, and no stack is deeper than TRACE_STACK_DEPTH_MAX. Returns how
 * many rows had to be repaired.
 */
uint64_t trace_check(struct trace *t);

#endif
