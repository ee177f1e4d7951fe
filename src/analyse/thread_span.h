/*
 * thread_span: samples of wall time weighed as dotnet-trace weighs them.
 *
 * A sample stands for the time to the same thread's next one, however far away that is: a thread that was
 * where the sampler does not see it is counted on. A thread's last sample stands for nothing, but on the
 * thread that ends the recording.
 */
#ifndef CLRPERF_ANALYSE_THREAD_SPAN_H
#define CLRPERF_ANALYSE_THREAD_SPAN_H

#include <stdint.h>

#include "trace/trace.h"

/* By sample of the trace, in nanoseconds; 0 for samples of other kinds than SAMPLE_WALL. The caller frees. */
uint64_t *thread_span_weights(const struct trace *t);

#endif
