/*
 * block_writer: writes the header and the blocks of a capture file (docs/TRACE_FORMAT.md).
 *
 * The file always ends with a whole block: where writing fails it is cut there.
 */
#ifndef CLRPERF_TRACE_BLOCK_WRITER_H
#define CLRPERF_TRACE_BLOCK_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "trace/format.h"

struct block_writer {
    int fd;        /* owned */
    uint32_t seed; /* of the blocks' checksums: the header's */
    uint32_t sequence;
    uint64_t bytes; /* the file's length: whole blocks only */
    bool failed;    /* for good, with this: */
    struct error failure;
    struct buffer raw; /* content of the block under way; its ceiling is that of a block */
    uint8_t *stored;
    size_t stored_capacity;
    struct ZSTD_CCtx_s *zstd;
};

/* Takes the descriptor, also when it fails, and writes the file's header. */
bool block_writer_open(struct block_writer *w, int fd, struct error *err);
/* Writes `raw`, compressed when that helps, and empties it. */
bool block_writer_put(struct block_writer *w, enum format_block_type type, struct error *err);
/* Fails when the file cannot be closed. Frees what it holds. */
bool block_writer_close(struct block_writer *w, struct error *err);

#endif
