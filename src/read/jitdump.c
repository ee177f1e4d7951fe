#include "read/jitdump.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAGIC = 0x4A695444,
    HEADER_BYTES = 40,
    PREFIX_BYTES = 16,
    LOAD_BYTES = 40, /* of a code load, between prefix and name */
    RECORD_CODE_LOAD = 0,
    HEAD_MAX = PREFIX_BYTES + LOAD_BYTES + JITDUMP_NAME_MAX,
    WINDOW_BYTES = 256 * 1024,
};

#define CODE_BYTES_MAX ((uint64_t)1 << 30)

bool jitdump_is(const struct source *file)
{
    uint8_t magic[4];
    return file->size >= sizeof magic && source_read(file, 0, magic, sizeof magic, NULL) &&
           load_u32le(magic) == MAGIC;
}

/* A code load. `bytes` starts with its prefix and may be longer than it, or end within the name. */
static bool parse_load(struct span bytes, struct jitdump_code *out)
{
    struct jitdump_code code = *out;
    struct cursor c = cursor_over(bytes);
    uint32_t id = cursor_u32le(&c), size = cursor_u32le(&c);
    if (size < PREFIX_BYTES)
        return false;
    if (size < bytes.size)
        c.bytes.size = size;
    code.time_ns = cursor_u64le(&c);
    cursor_skip(&c, 4 + 4); /* pid, tid */
    cursor_skip(&c, 8);     /* vma: .NET and perf's own agents repeat the code's address */
    code.start = cursor_u64le(&c);
    code.size_bytes = cursor_u64le(&c);
    cursor_skip(&c, 8); /* index */
    code.name = cursor_zstring(&c);
    if (!cursor_ok(&c) || id != RECORD_CODE_LOAD || code.size_bytes > CODE_BYTES_MAX ||
        code.size_bytes > UINT64_MAX - code.start)
        return false;
    *out = code;
    return true;
}

/* A piece of the file, so that small records do not cost a read each. */
struct window {
    const struct source *file;
    struct buffer bytes;
    uint64_t start;
};

/* `size` bytes at `offset`, which lie in the file and are not more than a window. */
static bool window_at(struct window *w, uint64_t offset, size_t size, struct span *out, struct error *err)
{
    if (offset < w->start || offset - w->start > w->bytes.size ||
        size > w->bytes.size - (offset - w->start)) {
        uint64_t left = w->file->size - offset;
        if (!source_load(w->file, offset, left < WINDOW_BYTES ? left : WINDOW_BYTES, &w->bytes, err))
            return false;
        w->start = offset;
    }
    *out = span_part(buffer_span(&w->bytes), offset - w->start, size);
    return true;
}

static bool read_records(struct window *w, uint64_t offset, jitdump_code_fn *emit, void *user,
                         struct jitdump_counts *counts, struct error *err)
{
    const struct source *file = w->file;
    while (file->size - offset >= PREFIX_BYTES) {
        struct span bytes;
        if (!window_at(w, offset, PREFIX_BYTES, &bytes, err))
            return false;
        uint32_t id = load_u32le(bytes.data), size = load_u32le(bytes.data + 4);
        struct jitdump_code code = { .record_off = offset };
        if (size < PREFIX_BYTES) {
            counts->malformed++;
            return true;
        }
        if (size > file->size - offset) {
            counts->cut = true;
            return true;
        }
        counts->records++;
        if (id == RECORD_CODE_LOAD) {
            if (!window_at(w, offset, size < HEAD_MAX ? size : HEAD_MAX, &bytes, err))
                return false;
            if (!parse_load(bytes, &code))
                counts->malformed++;
            else if (!emit(user, &code))
                return true;
        }
        offset += size;
    }
    counts->cut = offset != file->size;
    return true;
}

bool jitdump_read(const struct source *file, jitdump_code_fn *emit, void *user, struct jitdump_counts *out,
                  struct error *err)
{
    uint8_t header[HEADER_BYTES];
    if (file->size > JITDUMP_BYTES_MAX)
        return error_set(err, ERROR_LIMIT, "the jitdump is larger than 16 GiB");
    if (file->size < sizeof header)
        return error_set(err, ERROR_INPUT, "too short for a jitdump");
    if (!source_read(file, 0, header, sizeof header, err))
        return false;
    if (load_u32le(header) != MAGIC)
        return error_set(err, ERROR_INPUT, "not a jitdump");
    uint32_t header_bytes = load_u32le(header + 8);
    if (header_bytes < HEADER_BYTES || header_bytes > file->size)
        return error_set(err, ERROR_INPUT, "a jitdump with a header of %" PRIu32 " bytes", header_bytes);
    struct window w = { .file = file };
    struct jitdump_counts counts = { 0 };
    buffer_init(&w.bytes, WINDOW_BYTES);
    bool ok = read_records(&w, header_bytes, emit, user, &counts, err);
    buffer_done(&w.bytes);
    if (ok)
        *out = counts;
    return ok;
}

bool jitdump_code_at(const struct source *file, uint64_t record_off, struct buffer *bytes,
                     struct jitdump_code *out, struct error *err)
{
    uint64_t left = record_off < file->size ? file->size - record_off : 0;
    if (left < PREFIX_BYTES)
        return error_set(err, ERROR_INPUT, "no code load at offset %" PRIu64, record_off);
    if (!source_load(file, record_off, left < HEAD_MAX ? left : HEAD_MAX, bytes, err))
        return false;
    struct jitdump_code code = { .record_off = record_off };
    if (!parse_load(buffer_span(bytes), &code))
        return error_set(err, ERROR_INPUT, "the code load at offset %" PRIu64 " is damaged", record_off);
    *out = code;
    return true;
}
