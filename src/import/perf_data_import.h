/*
 * perf_data_import: fills a trace from a perf.data file or the output of `perf record -o -`.
 */
#ifndef CLRPERF_IMPORT_PERF_DATA_IMPORT_H
#define CLRPERF_IMPORT_PERF_DATA_IMPORT_H

#include "import/import.h"
#include "read/byte_stream.h"

/* The stream is at its start; its window is at least PERF_DATA_WINDOW_BYTES. */
bool perf_data_import(struct byte_stream *stream, const struct import_options *options,
                      struct trace_builder *b, struct error *err);

#endif
