/*
 * thread_span: samples of wall time weighed as dotnet-trace weighs them.
 *
 * A sample stands for the time to the same thread's next one, however far away that is: a thread that was
 * where the sampler does not see it is counted on. A thread's last sample stands for nothing, but on the
 * thread that ends the recording. Where a thread allocates it is seen, too.
 */
#ifndef CLRPERF_ANALYSE_THREAD_SPAN_H
#define CLRPERF_ANALYSE_THREAD_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

/* The events of allocations that count as looks at a thread. */
bool thread_span_wants(const char *provider, uint32_t event_id);
/* Adds a sample of SAMPLE_WALL behind the others for each of those. False, with none added, when there are
 * some and the samples are in runs, which they would divide. */
bool thread_span_add_allocations(struct trace *t);

/* By sample of the trace, in nanoseconds; 0 for samples of other kinds than SAMPLE_WALL. The caller frees. */
uint64_t *thread_span_weights(const struct trace *t);

#endif
