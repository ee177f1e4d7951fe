#include "trace/block_reader.h"

#include <inttypes.h>
#include <string.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "trace/format.h"

enum {
    READER_SCAN_BYTES = 64 * 1024,
    /* what a file may unpack to: a block of zeros is a ten thousandth of itself, captures are a twentieth at
       least */
    READER_RAW_BYTES_FREE = 64 << 20,
    READER_RAW_TIMES = 100,
    MAGIC_BYTES = 4,
    READER_SEARCH_MAX = 16, /* how often the file may be gone through for what only looks like blocks */
};

struct block_head {
    uint16_t type, flags;
    uint32_t sequence, stored, raw;
    uint32_t crc;
};

bool block_reader_recognises(struct span first_bytes)
{
    return first_bytes.size >= 8 && memcmp(first_bytes.data, FORMAT_MAGIC, 8) == 0;
}

bool block_reader_header(const struct source *file, uint32_t *out_seed, struct error *err)
{
    uint8_t bytes[FORMAT_HEADER_BYTES];
    if (!source_read(file, 0, bytes, sizeof bytes, err))
        return error_set(err, ERROR_INPUT, "the file is too short for a clrperf capture (%" PRIu64 " bytes)",
                         file->size);
    if (!block_reader_recognises(span_of(bytes, sizeof bytes)))
        return error_set(err, ERROR_INPUT, "offset 0: expected a clrperf capture's magic");
    struct cursor c = cursor_over(span_of(bytes, sizeof bytes));
    cursor_skip(&c, 8);
    uint16_t major = cursor_u16le(&c);
    cursor_u16le(&c);
    uint32_t features = cursor_u32le(&c);
    uint32_t seed = load_u32le(bytes + FORMAT_HEADER_BYTES - 4);
    if (crc32c(0, bytes, FORMAT_HEADER_BYTES - 4) != seed)
        return error_set(err, ERROR_INPUT, "offset 0: the capture's header is damaged (checksum)");
    if (major != FORMAT_MAJOR || features != 0) {
        error_set(err, ERROR_UNSUPPORTED, "the capture has format %u, this program reads %u", major,
                  FORMAT_MAJOR);
        return error_hint(err, "use the clrperf version that made it, or a newer one");
    }
    *out_seed = seed;
    return true;
}

void block_reader_init(struct block_reader *r, const struct source *file, uint32_t seed, struct trace *trace)
{
    *r = (struct block_reader){ .file = file, .trace = trace, .seed = seed, .offset = FORMAT_HEADER_BYTES };
    buffer_init(&r->stored, FORMAT_STORED_BYTES_MAX);
    buffer_init(&r->raw, FORMAT_RAW_BYTES_MAX);
}

void block_reader_done(struct block_reader *r)
{
    buffer_done(&r->stored);
    buffer_done(&r->raw);
}

/* The block's content, checked and unpacked, or an empty span with false. */
static bool block_unpack(struct block_reader *r, uint64_t offset, struct block_head *head, struct span *out)
{
    uint8_t bytes[FORMAT_BLOCK_HEADER_BYTES];
    if (!source_read(r->file, offset, bytes, sizeof bytes, NULL) || load_u32le(bytes) != FORMAT_BLOCK_MAGIC)
        return false;
    *head = (struct block_head){
        .type = load_u16le(bytes + 4),
        .flags = load_u16le(bytes + 6),
        .sequence = load_u32le(bytes + 8),
        .stored = load_u32le(bytes + 12),
        .raw = load_u32le(bytes + 16),
        .crc = load_u32le(bytes + 28),
    };
    if (head->stored > FORMAT_STORED_BYTES_MAX || head->raw > FORMAT_RAW_BYTES_MAX)
        return false;
    if (!source_load(r->file, offset + sizeof bytes, head->stored, &r->stored, NULL))
        return false;
    if (crc32c(crc32c(r->seed, bytes, 28), r->stored.data, r->stored.size) != head->crc)
        return false;
    if (!(head->flags & FORMAT_ZSTD)) {
        *out = buffer_span(&r->stored);
        return head->raw == head->stored;
    }
    buffer_clear(&r->raw);
    uint8_t *room = buffer_reserve(&r->raw, head->raw);
    if (!room)
        return false;
    size_t got = ZSTD_decompress(room, head->raw, r->stored.data, r->stored.size);
    *out = span_of(room, head->raw);
    return got == head->raw;
}

/* Counted from its begin: where bytes before it are missing, it lies anywhere. */
static uint64_t block_end(uint64_t offset, const struct block_head *head)
{
    uint64_t size = FORMAT_BLOCK_HEADER_BYTES + (uint64_t)head->stored;
    return offset + (size + FORMAT_BLOCK_ALIGN - 1) / FORMAT_BLOCK_ALIGN * FORMAT_BLOCK_ALIGN;
}

/* Where the next magic is in a window, at `from` or behind it; `size` when there is none. */
static size_t find_magic(const uint8_t *window, size_t from, size_t size)
{
    uint8_t magic[MAGIC_BYTES] = { FORMAT_BLOCK_MAGIC & 0xff, FORMAT_BLOCK_MAGIC >> 8 & 0xff,
                                   FORMAT_BLOCK_MAGIC >> 16 & 0xff, FORMAT_BLOCK_MAGIC >> 24 & 0xff };
    const uint8_t *found = from < size ? memmem(window + from, size - from, magic, sizeof magic) : NULL;
    return found ? (size_t)(found - window) : size;
}

/* The next block, or the end of the file. One made of what looks like blocks all over is given up. */
static uint64_t block_resync(struct block_reader *r, uint64_t offset)
{
    uint8_t window[READER_SCAN_BYTES];
    for (uint64_t at = offset; at < r->file->size;) {
        size_t size = r->file->size - at < sizeof window ? (size_t)(r->file->size - at) : sizeof window;
        if (!source_read(r->file, at, window, size, NULL))
            break;
        for (size_t i = find_magic(window, 0, size); i < size; i = find_magic(window, i + 1, size)) {
            struct block_head head = { 0 };
            struct span content;
            if (block_unpack(r, at + i, &head, &content))
                return at + i;
            r->searched += head.stored;
            if (r->searched / READER_SEARCH_MAX > r->file->size) {
                r->malformed++;
                return r->file->size;
            }
        }
        at += size < sizeof window ? size : size - (MAGIC_BYTES - 1); /* one can lie across the end */
    }
    return r->file->size;
}

static void add_gap(struct block_reader *r, uint64_t file_off, uint64_t size_bytes)
{
    uint32_t gap = trace_push(&r->trace->gaps);
    r->trace->gaps.rows[gap] = (struct trace_gap){ file_off, size_bytes };
}

/* A file that unpacks to far more than any capture was made to fill memory. */
static bool is_bomb(struct block_reader *r, const struct block_head *head)
{
    r->unpacked += head->raw;
    return r->unpacked > READER_RAW_BYTES_FREE &&
           (r->unpacked - READER_RAW_BYTES_FREE) / READER_RAW_TIMES > r->file->size;
}

bool block_reader_next(struct block_reader *r, uint16_t *out_type, struct span *out_content)
{
    while (r->offset < r->file->size) {
        struct block_head head;
        if (!block_unpack(r, r->offset, &head, out_content)) {
            uint64_t next = block_resync(r, r->offset + 1);
            if (next < r->file->size) /* at the end it is a torn write, not a gap */
                add_gap(r, r->offset, next - r->offset);
            r->offset = next;
            continue;
        }
        if (is_bomb(r, &head)) {
            add_gap(r, r->offset, r->file->size - r->offset);
            r->malformed++;
            return false;
        }
        if (head.sequence != r->sequence && r->trace->gaps.count <= 1)
            add_gap(r, r->offset, 0);
        r->offset = block_end(r->offset, &head);
        if (head.sequence < r->sequence) /* it stands here a second time */
            continue;
        r->sequence = head.sequence + 1;
        *out_type = head.type;
        return true;
    }
    return false;
}
