/*
 * nettrace_kept: rows of a capture that a written event stream keeps for ourselves (clr/kept_rows.h).
 */
#ifndef CLRPERF_RENDER_NETTRACE_KEPT_H
#define CLRPERF_RENDER_NETTRACE_KEPT_H

#include "render/nettrace_stream.h"
#include "trace/trace.h"

/*
 * Before everything else in the stream, which is of that process. `cpu_samples`: it will have some.
 * Of what the stream says in its own way nothing is kept.
 */
void nettrace_kept_write(const struct trace *t, uint32_t process, bool cpu_samples,
                         struct nettrace_stream *s);

#endif
