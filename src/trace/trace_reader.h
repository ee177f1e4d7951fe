/*
 * trace_reader: loads a capture file, whole or damaged, into a trace.
 *
 * The format is docs/TRACE_FORMAT.md. A file whose writer was killed lacks its end and is otherwise
 * fine (`trace.complete` is false). Damage in the middle becomes a row of `trace.gaps`. References to
 * rows that are not there are cleared and counted as a loss, LOSS_MALFORMED.
 */
#ifndef CLRPERF_TRACE_TRACE_READER_H
#define CLRPERF_TRACE_TRACE_READER_H

#include "base/error.h"
#include "base/source.h"
#include "trace/trace.h"

/* Whether these first bytes (8 or more) are a capture's. */
bool trace_reader_recognises(struct span first_bytes);
/* Fills `out`, which the caller ends with trace_done(). Fails when not even the header is readable. */
bool trace_reader_load(const struct source *file, struct trace *out, struct error *err);

#endif
