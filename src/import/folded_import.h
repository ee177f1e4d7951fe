/*
 * folded_import: fills a trace from folded stacks: one sample a line, without times and threads.
 */
#ifndef CLRPERF_IMPORT_FOLDED_IMPORT_H
#define CLRPERF_IMPORT_FOLDED_IMPORT_H

#include "import/import.h"
#include "read/byte_stream.h"

bool folded_import(struct byte_stream *stream, const struct import_options *options, struct trace_builder *b,
                   struct error *err);

#endif
