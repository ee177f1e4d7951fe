/*
 * trace_writer: appends what is new in a builder's trace to a capture file.
 *
 * Only ever appends. After each trace_writer_flush() a reader finds everything up to it, whatever
 * happens to this process. The format is docs/TRACE_FORMAT.md.
 */
#ifndef CLRPERF_TRACE_TRACE_WRITER_H
#define CLRPERF_TRACE_TRACE_WRITER_H

#include "base/buffer.h"
#include "base/error.h"
#include "trace/builder.h"

struct trace_writer;

/*
 * Takes over `fd`, an empty file open for writing. Writes the header.
 * Fails with ERROR_SYSTEM; `fd` is closed then.
 */
bool trace_writer_open(int fd, struct trace_writer **out, struct error *err);
/*
 * Writes rows added or changed since the last flush. Samples that were written are dropped from the
 * builder's memory. After a failed write the file is cut back to its last whole block and every later
 * flush fails at once.
 */
bool trace_writer_flush(struct trace_writer *w, struct trace_builder *b, struct error *err);
/* What is in the file: less than was given when writing failed. */
struct trace_written {
    uint64_t bytes, samples;
};

/* Flushes, marks the end, closes. Frees `w` in any case. `out` may be NULL. */
bool trace_writer_close(struct trace_writer *w, struct trace_builder *b, struct trace_written *out,
                        struct error *err);
uint64_t trace_writer_bytes(const struct trace_writer *w);

#endif
