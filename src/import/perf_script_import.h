/*
 * perf_script_import: fills a trace from the text of `perf script`; frames keep the names they have there.
 */
#ifndef CLRPERF_IMPORT_PERF_SCRIPT_IMPORT_H
#define CLRPERF_IMPORT_PERF_SCRIPT_IMPORT_H

#include "import/import.h"
#include "read/byte_stream.h"

bool perf_script_import(struct byte_stream *stream, const struct import_options *options,
                        struct trace_builder *b, struct error *err);

#endif
