/*
 * perf_map_text: code symbols as the text that perf, bcc and bpftrace read for a process.
 *
 * One "START SIZE NAME" per line, in hex without 0x; the name runs to the end of the line. Specified in the
 * Linux source, tools/perf/Documentation/jit-interface.txt.
 */
#ifndef CLRPERF_RENDER_PERF_MAP_TEXT_H
#define CLRPERF_RENDER_PERF_MAP_TEXT_H

#include "render/output.h"
#include "trace/code_symbols.h"

/* `symbols` are settled; their names become shown_text, so that a line stays one. A name of nothing is left
 * out. */
void perf_map_text_write(const struct trace *t, const struct code_symbols *symbols, struct output *out);

#endif
