/*
 * nettrace_kept: what a written event stream says for ourselves (clr/kept_events.h), but for its methods.
 */
#ifndef CLRPERF_RENDER_NETTRACE_KEPT_H
#define CLRPERF_RENDER_NETTRACE_KEPT_H

#include "render/nettrace_stream.h"
#include "trace/trace.h"

/* Before everything else in the stream. `cpu_samples`: it will have some. */
void nettrace_kept_begin(const struct trace *t, bool cpu_samples, struct nettrace_stream *s,
                         uint64_t time_ns);
/* At its end: what is known of the process, but for what the stream says in its own way. */
void nettrace_kept_end(const struct trace *t, uint32_t process, struct nettrace_stream *s, uint64_t time_ns);

#endif
