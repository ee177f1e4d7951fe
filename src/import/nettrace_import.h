/*
 * nettrace_import: fills a trace from a file of events that a .NET runtime told (nettrace, NetPerf).
 *
 * Samples of the runtime's sampler become SAMPLE_WALL samples: they say where a thread was, not that it ran.
 * Everything else becomes events, with stacks. Names come from what the file itself says of methods. A file
 * that clrperf wrote gives what it was made of: its samples are those of the capture.
 */
#ifndef CLRPERF_IMPORT_NETTRACE_IMPORT_H
#define CLRPERF_IMPORT_NETTRACE_IMPORT_H

#include "import/import.h"
#include "read/byte_stream.h"

bool nettrace_import(struct byte_stream *stream, const struct import_options *options,
                     struct trace_builder *b, struct error *err);

#endif
