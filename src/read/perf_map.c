#include "read/perf_map.h"

#include <string.h>

#include "base/mem.h"
#include "base/own.h"

enum { WINDOW_BYTES = 256 * 1024 };

static unsigned hex_digit(uint8_t c)
{
    unsigned decimal = (unsigned)c - '0', letter = ((unsigned)c | 0x20) - 'a';
    return decimal < 10 ? decimal : letter < 6 ? letter + 10 : 16;
}

/* A hex number and the blank behind it. False when there is none, or it is wider than 64 bits. */
static bool take_number(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    const uint8_t *p = *at;
    if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
        p += 2;
    const uint8_t *first = p;
    uint64_t value = 0;
    for (unsigned digit; p < end && (digit = hex_digit(*p)) < 16; p++) {
        if (value >> 60)
            return false;
        value = value << 4 | digit;
    }
    if (p == first || p == end || *p != ' ')
        return false;
    *at = p + 1;
    *out = value;
    return true;
}

static bool parse_line(const uint8_t *text, const uint8_t *end, struct perf_map_line *out)
{
    const uint8_t *p = text;
    uint64_t start, size_bytes;
    if (!take_number(&p, end, &start) || !take_number(&p, end, &size_bytes) || p == end ||
        size_bytes > PERF_MAP_CODE_BYTES_MAX || size_bytes > UINT64_MAX - start)
        return false;
    *out = (struct perf_map_line){ start, size_bytes, { p, (size_t)(end - p) } };
    return true;
}

struct backwards {
    const struct source *file;
    uint8_t *window;
    perf_map_line_fn *emit;
    void *user;
    struct perf_map_counts counts;
    bool stopped;
};

/* Emits the lines of [text, end), each ended by a newline, last one first. */
static void take_lines(struct backwards *b, const uint8_t *text, const uint8_t *end)
{
    while (end > text && !b->stopped) {
        const uint8_t *newline = end - 1;
        const uint8_t *before = newline > text ? memrchr(text, '\n', (size_t)(newline - text)) : NULL;
        const uint8_t *line = before ? before + 1 : text;
        struct perf_map_line parsed;
        b->counts.lines++;
        if ((size_t)(newline - line) <= PERF_MAP_LINE_MAX && parse_line(line, newline, &parsed))
            b->stopped = !b->emit(b->user, &parsed);
        else
            b->counts.malformed++;
        end = line;
    }
}

/*
 * Windows end behind a newline. One that holds no other newline is a piece of a line that is too
 * long: it is passed over, and `cut` remembers that the rest of that line comes next.
 */
static bool read_windows(struct backwards *b, struct error *err)
{
    bool cut = true; /* what stands behind the last newline is not a line yet */
    for (uint64_t end = b->file->size; end > 0 && !b->stopped;) {
        size_t size = end < WINDOW_BYTES ? (size_t)end : WINDOW_BYTES;
        uint64_t start = end - size;
        if (!source_read(b->file, start, b->window, size, err))
            return false;
        const uint8_t *stop = b->window + size;
        if (cut) {
            const uint8_t *newline = memrchr(b->window, '\n', size);
            if (!newline) {
                end = start;
                continue;
            }
            cut = false;
            end = start + (uint64_t)(newline - b->window) + 1;
            continue;
        }
        const uint8_t *first = b->window;
        if (start > 0) {
            const uint8_t *newline = memchr(b->window, '\n', size);
            first = newline + 1; /* there is one: the window ends in it */
            if (first == stop) {
                cut = true;
                b->counts.lines++;
                b->counts.malformed++;
                end = start;
                continue;
            }
        }
        take_lines(b, first, stop);
        end = start + (uint64_t)(first - b->window);
    }
    return true;
}

bool perf_map_read_backwards(const struct source *file, perf_map_line_fn *emit, void *user,
                             struct perf_map_counts *out, struct error *err)
{
    if (file->size > PERF_MAP_BYTES_MAX)
        return error_set(err, ERROR_LIMIT, "the perf map is larger than 4 GiB");
    AUTO_FREE uint8_t *window = mem_alloc(WINDOW_BYTES, 1);
    struct backwards b = { .file = file, .window = window, .emit = emit, .user = user };
    if (!read_windows(&b, err))
        return false;
    *out = b.counts;
    return true;
}
