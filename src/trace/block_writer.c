#include "trace/block_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fd_write.h"
#include "base/mem.h"

enum { WRITER_ZSTD_LEVEL = 1 };

static bool write_bytes(struct block_writer *w, const void *bytes, size_t size, struct error *err)
{
    if (!fd_write(w->fd, span_of(bytes, size))) {
        int e = errno;
        int ignored =
            ftruncate(w->fd, (off_t)w->bytes); /* else a reader drops the torn block by its checksum */
        (void)ignored;
        w->failed = true;
        fd_write_failed(&w->failure, e, w->bytes, "cannot write the capture");
        if (err)
            *err = w->failure;
        return false;
    }
    w->bytes += size;
    return true;
}

static bool write_header(struct block_writer *w, struct error *err)
{
    uint8_t uuid[16] = { 0 };
    if (getrandom(uuid, sizeof uuid, 0) < 0)
        memcpy(uuid, &(uint64_t){ clock_realtime_ns() }, 8);
    struct buffer b;
    buffer_init(&b, FORMAT_HEADER_BYTES);
    buffer_append(&b, FORMAT_MAGIC, 8);
    buffer_u16le(&b, FORMAT_MAJOR);
    buffer_u16le(&b, FORMAT_MINOR);
    buffer_u32le(&b, 0); /* features a reader must know */
    buffer_append(&b, uuid, sizeof uuid);
    buffer_u64le(&b, clock_monotonic_ns());
    buffer_u64le(&b, clock_realtime_ns());
    while (b.size < FORMAT_HEADER_BYTES - 4)
        buffer_u8(&b, 0);
    w->seed = crc32c(0, b.data, b.size);
    buffer_u32le(&b, w->seed);
    bool ok = write_bytes(w, b.data, b.size, err);
    buffer_done(&b);
    return ok;
}

bool block_writer_open(struct block_writer *w, int fd, struct error *err)
{
    *w = (struct block_writer){ .fd = fd, .zstd = ZSTD_createCCtx() };
    buffer_init(&w->raw, FORMAT_RAW_BYTES_MAX);
    if (w->zstd) {
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, WRITER_ZSTD_LEVEL);
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_windowLog, 19); /* a batch fits; keeps our memory small */
    }
    if (w->zstd && write_header(w, err))
        return true;
    if (!w->zstd)
        error_set(err, ERROR_LIMIT, "cannot set up compression");
    block_writer_close(w, NULL);
    return false;
}

bool block_writer_put(struct block_writer *w, enum format_block_type type, struct error *err)
{
    assert(!w->raw.failed); /* batches end far below its ceiling */
    size_t bound = ZSTD_compressBound(w->raw.size);
    size_t room = FORMAT_BLOCK_HEADER_BYTES + bound + FORMAT_BLOCK_ALIGN;
    w->stored = mem_grow(w->stored, &w->stored_capacity, room, 1);
    uint8_t *payload = w->stored + FORMAT_BLOCK_HEADER_BYTES;
    uint16_t flags = FORMAT_ZSTD;
    size_t stored = ZSTD_compress2(w->zstd, payload, bound, w->raw.data, w->raw.size);
    if (ZSTD_isError(stored) || stored >= w->raw.size) {
        flags = 0;
        stored = w->raw.size;
        if (stored)
            memcpy(payload, w->raw.data, stored);
    }
    struct buffer head;
    buffer_init(&head, FORMAT_BLOCK_HEADER_BYTES);
    buffer_u32le(&head, FORMAT_BLOCK_MAGIC);
    buffer_u16le(&head, (uint16_t)type);
    buffer_u16le(&head, flags);
    buffer_u32le(&head, w->sequence);
    buffer_u32le(&head, (uint32_t)stored);
    buffer_u32le(&head, (uint32_t)w->raw.size);
    buffer_u64le(&head, clock_monotonic_ns());
    uint32_t crc = crc32c(crc32c(w->seed, head.data, head.size), payload, stored);
    buffer_u32le(&head, crc);
    memcpy(w->stored, head.data, head.size);
    buffer_done(&head);
    size_t size = FORMAT_BLOCK_HEADER_BYTES + stored;
    while (size % FORMAT_BLOCK_ALIGN)
        w->stored[size++] = 0;
    buffer_clear(&w->raw);
    w->sequence++;
    return write_bytes(w, w->stored, size, err);
}

bool block_writer_close(struct block_writer *w, struct error *err)
{
    bool ok = close(w->fd) == 0 || error_system(err, errno, "cannot close the capture");
    ZSTD_freeCCtx(w->zstd);
    buffer_done(&w->raw);
    free(w->stored);
    return ok;
}
