#include "clr/runtime_version.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

const char *runtime_kind_name(enum runtime_kind kind)
{
    static const char *const names[] = {
        [RUNTIME_CORECLR] = "coreclr",
        [RUNTIME_NATIVEAOT] = "nativeaot",
        [RUNTIME_MONO] = "mono",
    };
    return (size_t)kind < ARRAY_LEN(names) ? names[kind] : NULL;
}

static bool is_version_char(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '+';
}

const char *runtime_version_or_kind(enum runtime_kind kind, const struct runtime_version *version)
{
    static const char *const kinds[] = { [RUNTIME_NATIVEAOT] = "Native AOT", [RUNTIME_MONO] = "Mono" };
    bool tells = version->text[0] || kind == RUNTIME_NONE || kind == RUNTIME_CORECLR;
    return tells ? version->text : kinds[kind];
}

bool runtime_version_from_name(struct span name, struct runtime_version *out)
{
    struct runtime_version version = { 0 };
    if (name.size < 3 || name.size >= sizeof version.text || name.data[0] < '0' || name.data[0] > '9' ||
        !memchr(name.data, '.', name.size))
        return false;
    for (size_t i = 0; i < name.size; i++) {
        if (!is_version_char(name.data[i]))
            return false;
    }
    memcpy(version.text, name.data, name.size);
    *out = version;
    return true;
}

bool runtime_version_from_path(struct span path, struct runtime_version *out)
{
    if (!path.data)
        return false;
    const uint8_t *end = memrchr(path.data, '/', path.size);
    const uint8_t *slash = end && end > path.data ? memrchr(path.data, '/', (size_t)(end - path.data)) : NULL;
    return slash && runtime_version_from_name((struct span){ slash + 1, (size_t)(end - slash - 1) }, out);
}

static const char marker[] = "@(#)Version ";

/* Digits and the dot behind them; at most 6 digits. */
static bool take_part(struct cursor *c, uint32_t *out)
{
    uint32_t value = 0;
    unsigned digits = 0;
    for (;; digits++) {
        uint8_t byte = cursor_u8(c);
        if (byte < '0' || byte > '9')
            break;
        if (digits == 6)
            return false;
        value = value * 10 + (byte - '0');
    }
    *out = value;
    return digits > 0;
}

bool runtime_version_from_text(struct span text, struct runtime_version *out)
{
    struct cursor c = cursor_over(text);
    struct span start = cursor_bytes(&c, sizeof marker - 1);
    uint32_t major, minor, build;
    if (!span_equals(start, span_of(marker, sizeof marker - 1)) || !take_part(&c, &major) ||
        !take_part(&c, &minor) || !take_part(&c, &build) || !cursor_ok(&c))
        return false;
    *out = (struct runtime_version){ 0 };
    if (major == 4 && minor == 700)
        snprintf(out->text, sizeof out->text, "3.1");
    else
        snprintf(out->text, sizeof out->text, "%" PRIu32 ".%" PRIu32 ".%" PRIu32, major, minor,
                 build >= 100 ? build / 100 : 0);
    return true;
}

struct scan {
    const struct source *file;
    uint8_t *chunk;
    uint64_t bytes; /* read so far */
    bool coreclr, nativeaot, version_seen;
    struct runtime_version version;
};

enum { CHUNK_BYTES = 1 << 18, OVERLAP_BYTES = 64 };

static const uint8_t *find(struct span text, const char *wanted, size_t size)
{
    return text.data ? memmem(text.data, text.size, wanted, size) : NULL;
}

static void look(struct scan *s, struct span text)
{
    /* names that the runtimes export for debuggers */
    static const char coreclr_name[] = "\0DotNetRuntimeInfo", aot_name[] = "\0DotNetRuntimeDebugHeader";
    s->coreclr |= find(text, coreclr_name, sizeof coreclr_name) != NULL;
    s->nativeaot |= find(text, aot_name, sizeof aot_name) != NULL;
    while (!s->version_seen) {
        const uint8_t *at = find(text, marker, sizeof marker - 1);
        if (!at)
            return;
        text.size -= (size_t)(at - text.data);
        text.data = at;
        s->version_seen = runtime_version_from_text(text, &s->version);
        text.data++;
        text.size--;
    }
}

static bool scan_segment(struct scan *s, uint64_t offset, uint64_t size, struct error *err)
{
    if (offset > s->file->size)
        return true;
    if (size > s->file->size - offset)
        size = s->file->size - offset;
    while (size && s->bytes < RUNTIME_SCAN_BYTES_MAX && !(s->coreclr && s->version_seen)) {
        size_t count = size < CHUNK_BYTES ? (size_t)size : CHUNK_BYTES;
        if (!source_read(s->file, offset, s->chunk, count, err))
            return false;
        look(s, span_of(s->chunk, count));
        s->bytes += count;
        if (count == size)
            break;
        /* what lies across two chunks is whole in the next one */
        offset += count - OVERLAP_BYTES;
        size -= count - OVERLAP_BYTES;
    }
    return true;
}

enum { ELF_LOAD = 1, ELF_EXECUTE = 1, SEGMENTS_MAX = 64, SEGMENT_BYTES = 56 };

/* Data first: the text is there, and code is the larger part. */
static bool scan_segments(struct scan *s, struct span headers, bool executable, struct error *err)
{
    struct cursor c = cursor_over(headers);
    while (cursor_left(&c) >= SEGMENT_BYTES) {
        uint32_t type = cursor_u32le(&c);
        uint32_t flags = cursor_u32le(&c);
        uint64_t offset = cursor_u64le(&c);
        cursor_skip(&c, 16); /* addresses */
        uint64_t size = cursor_u64le(&c);
        cursor_skip(&c, SEGMENT_BYTES - 40);
        if (type == ELF_LOAD && ((flags & ELF_EXECUTE) != 0) == executable &&
            !scan_segment(s, offset, size, err))
            return false;
    }
    return true;
}

bool runtime_version_scan(const struct source *file, enum runtime_kind *out_kind, struct runtime_version *out,
                          struct error *err)
{
    uint8_t header[64], segments[SEGMENTS_MAX * SEGMENT_BYTES];
    if (!source_read(file, 0, header, sizeof header, err))
        return false;
    if (memcmp(header,
               "\x7f"
               "ELF\2\1",
               6) != 0)
        return error_set(err, ERROR_INPUT, "no 64-bit little-endian ELF file");
    uint64_t offset = load_u64le(header + 32);
    uint16_t entry_size = load_u16le(header + 54), count = load_u16le(header + 56);
    if (entry_size != SEGMENT_BYTES || count > SEGMENTS_MAX)
        return error_set(err, ERROR_INPUT, "an ELF file with %u segments of %u bytes", count, entry_size);
    if (!source_read(file, offset, segments, (size_t)count * SEGMENT_BYTES, err))
        return false;
    AUTO_FREE uint8_t *chunk = mem_alloc(CHUNK_BYTES, 1);
    struct scan s = { .file = file, .chunk = chunk };
    struct span headers = span_of(segments, (size_t)count * SEGMENT_BYTES);
    if (!scan_segments(&s, headers, false, err) ||
        (!s.version_seen && !s.coreclr && !s.nativeaot && !scan_segments(&s, headers, true, err)))
        return false;
    /* a single-file host holds both names, a native executable only its own */
    *out_kind = RUNTIME_NONE;
    if (s.coreclr || s.version_seen)
        *out_kind = RUNTIME_CORECLR;
    else if (s.nativeaot)
        *out_kind = RUNTIME_NATIVEAOT;
    *out = s.version;
    return true;
}
