/*
 * nettrace: a trace as the event stream of a .NET runtime, for dotnet-trace, TraceEvent and what builds on
 * them.
 *
 * Events of the runtime go out as they came in. Samples become those of the runtime's own sampler, which is
 * what others take for time: a thread that was not on a CPU between two samples is said to be outside managed
 * code. Where there are events of that sampler, they are all the samples of the file.
 * What others do not read, so that we read the capture again: clr/kept_rows.h.
 */
#ifndef CLRPERF_RENDER_NETTRACE_H
#define CLRPERF_RENDER_NETTRACE_H

#include "render/output.h"
#include "trace/trace.h"

/*
 * The format holds one process: that with the most samples and events. *out_others: how many others of the
 * trace have some. 0 when none has.
 */
uint32_t nettrace_process(const struct trace *t, uint32_t *out_others);
/* Fails with ERROR_INPUT when no process has samples or events. */
bool nettrace_write(const struct trace *t, struct output *out, struct error *err);

#endif
