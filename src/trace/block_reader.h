/*
 * block_reader: the blocks of a capture file, checked and unpacked, one after another (docs/TRACE_FORMAT.md).
 *
 * Behind damage it goes on at the next block that is whole; what lies between becomes a gap of the trace.
 */
#ifndef CLRPERF_TRACE_BLOCK_READER_H
#define CLRPERF_TRACE_BLOCK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/source.h"
#include "trace/trace.h"

struct block_reader {
    const struct source *file; /* borrowed */
    struct trace *trace;       /* borrowed: takes the gaps */
    uint32_t seed, sequence;
    uint64_t offset;    /* of the next block */
    uint64_t searched;  /* bytes of blocks that were looked at behind damage */
    uint64_t unpacked;  /* bytes of blocks that were read */
    uint64_t malformed; /* times it gave up */
    struct buffer stored, raw;
};

/* Whether a file that begins with these is a capture. */
bool block_reader_recognises(struct span first_bytes);
/* Reads the file's header. Fails with ERROR_INPUT, or ERROR_UNSUPPORTED for another format's version. */
bool block_reader_header(const struct source *file, uint32_t *out_seed, struct error *err);
void block_reader_init(struct block_reader *r, const struct source *file, uint32_t seed, struct trace *trace);
void block_reader_done(struct block_reader *r);
/* The next block, valid until the one after it: its enum format_block_type and content. False at the end. */
bool block_reader_next(struct block_reader *r, uint16_t *out_type, struct span *out_content);

#endif
