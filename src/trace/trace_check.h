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

/*
 * After it the weights of all samples are less than 2^63 together, so that no sum of them wraps: where they
 * were more, each counts as a sample's part of that at most, *out_max. Returns how many were larger.
 */
uint64_t trace_limit_weights(struct trace *t, uint64_t *out_max);

#endif
