#include "base/json_writer.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd_write.h"
#include "base/float_text.h"
#include "base/utf8.h"

enum { LEVEL_OBJECT = 1, LEVEL_USED = 2 };

void json_init(struct json_writer *w, struct buffer *out)
{
    json_init_stream(w, out, NULL, NULL);
}

void json_init_stream(struct json_writer *w, struct buffer *out, json_flush_fn *flush, void *user)
{
    memset(w, 0, sizeof *w);
    w->out = out;
    w->flush = flush;
    w->user = user;
}

bool json_flush_to_fd(void *user, struct span bytes)
{
    return fd_write(*(const int *)user, bytes);
}

static void flush(struct json_writer *w, size_t threshold)
{
    if (!w->flush || w->out->size < threshold)
        return;
    if (!w->failed && !w->flush(w->user, buffer_span(w->out))) {
        w->failed = true;
        w->os_error = errno;
    }
    bool overflowed = w->out->failed;
    buffer_clear(w->out);
    w->out->failed = overflowed;
}

/* Whatever has to stand between the value before and the one that follows. */
static void begin_value(struct json_writer *w)
{
    if (w->depth) {
        uint8_t *level = &w->levels[w->depth - 1];
        assert(!(*level & LEVEL_OBJECT) || w->after_key);
        if (!(*level & LEVEL_OBJECT) && (*level & LEVEL_USED))
            buffer_u8(w->out, ',');
        *level |= LEVEL_USED;
    }
    w->after_key = false;
    flush(w, JSON_FLUSH_BYTES);
}

static void begin_level(struct json_writer *w, char bracket, uint8_t level)
{
    begin_value(w);
    assert(w->depth < JSON_DEPTH_MAX);
    w->levels[w->depth++] = level;
    buffer_u8(w->out, (uint8_t)bracket);
}

static void end_level(struct json_writer *w, char bracket, uint8_t level)
{
    assert(w->depth && (w->levels[w->depth - 1] & LEVEL_OBJECT) == level && !w->after_key);
    w->depth--;
    buffer_u8(w->out, (uint8_t)bracket);
}

void json_begin_object(struct json_writer *w)
{
    begin_level(w, '{', LEVEL_OBJECT);
}

void json_end_object(struct json_writer *w)
{
    end_level(w, '}', LEVEL_OBJECT);
}

void json_begin_array(struct json_writer *w)
{
    begin_level(w, '[', 0);
}

void json_end_array(struct json_writer *w)
{
    end_level(w, ']', 0);
}

/* Most text is plain: runs of it are copied, the rest is looked at one by one. */
static size_t plain_run(struct span text)
{
    const uint64_t ones = 0x0101010101010101, highest = ones << 7;
    size_t size = 0;
    for (; text.size - size >= 8;
         size += 8) { /* eight at once; some that are plain do not seem so: see below */
        uint64_t eight = load_u64le(text.data + size);
        uint64_t quotes = eight ^ ones * '"', slashes = eight ^ ones * '\\', deletes = eight ^ ones * 0x7f;
        uint64_t control = eight - ones * 0x20;
        if ((eight | control | (quotes - ones) | (slashes - ones) | (deletes - ones)) & highest)
            break;
    }
    while (size < text.size && text.data[size] >= 0x20 && text.data[size] < 0x7f && text.data[size] != '"' &&
           text.data[size] != '\\')
        size++;
    return size;
}

/* Keys and most texts are plain as a whole. */
static bool append_plain(struct buffer *out, struct span text)
{
    if (plain_run(text) < text.size || out->capacity - out->size < text.size + 2 ||
        out->ceiling - out->size < text.size + 2)
        return false;
    uint8_t *at = out->data + out->size;
    at[0] = '"';
    memcpy(at + 1, text.data, text.size);
    at[text.size + 1] = '"';
    out->size += text.size + 2;
    return true;
}

static void append_quoted(struct buffer *out, struct span text)
{
    if (!out->failed && text.size && append_plain(out, text))
        return;
    buffer_u8(out, '"');
    struct cursor c = cursor_over(text);
    while (cursor_left(&c)) {
        size_t plain = plain_run((struct span){ text.data + c.pos, text.size - c.pos });
        struct span run = cursor_bytes(&c, plain);
        buffer_append(out, run.data, run.size);
        if (!cursor_left(&c))
            break;
        uint32_t value = utf8_next(&c);
        if (value == '"' || value == '\\') {
            buffer_u8(out, '\\');
            buffer_u8(out, (uint8_t)value);
        } else if (value == '\n') {
            buffer_string(out, "\\n");
        } else if (value == '\t') {
            buffer_string(out, "\\t");
        } else if (value >= 0x10000 || utf8_is_printable(value)) {
            utf8_append(out, value);
        } else {
            buffer_format(out, "\\u%04x", value);
        }
    }
    buffer_u8(out, '"');
}

void json_key(struct json_writer *w, const char *key)
{
    assert(w->depth && (w->levels[w->depth - 1] & LEVEL_OBJECT) && !w->after_key);
    if (w->levels[w->depth - 1] & LEVEL_USED)
        buffer_u8(w->out, ',');
    w->levels[w->depth - 1] |= LEVEL_USED;
    append_quoted(w->out, span_of(key, strlen(key)));
    buffer_u8(w->out, ':');
    w->after_key = true;
}

void json_span(struct json_writer *w, struct span text)
{
    begin_value(w);
    append_quoted(w->out, text);
}

void json_quoted(struct json_writer *w, const char *text)
{
    if (text)
        json_span(w, span_of(text, strlen(text)));
    else
        json_absent(w);
}

/* Documents are mostly numbers: printf takes ten times as long. */
static void append_u64(struct buffer *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    buffer_append(out, digits + at, sizeof digits - at);
}

static uint64_t append_sign(struct buffer *out, int64_t value)
{
    if (value < 0)
        buffer_u8(out, '-');
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

void json_u64(struct json_writer *w, uint64_t value)
{
    begin_value(w);
    append_u64(w->out, value);
}

void json_i64(struct json_writer *w, int64_t value)
{
    begin_value(w);
    append_u64(w->out, append_sign(w->out, value));
}

void json_ns_as_s(struct json_writer *w, int64_t ns)
{
    enum { SECOND = 1000000000, DIGITS = 9 };
    begin_value(w);
    uint64_t value = append_sign(w->out, ns), rest = value % SECOND;
    append_u64(w->out, value / SECOND);
    if (!rest)
        return;
    char digits[1 + DIGITS] = ".";
    size_t used = DIGITS;
    for (size_t i = DIGITS; i > 0; i--, rest /= 10)
        digits[i] = (char)('0' + rest % 10);
    while (digits[used] == '0')
        used--;
    buffer_append(w->out, digits, used + 1);
}

void json_double(struct json_writer *w, double value)
{
    if (!isfinite(value)) {
        json_absent(w);
        return;
    }
    begin_value(w);
    buffer_string(w->out, double_text(value).text);
}

void json_float(struct json_writer *w, float value)
{
    if (!isfinite(value)) {
        json_absent(w);
        return;
    }
    begin_value(w);
    buffer_string(w->out, float_text(value).text);
}

void json_hex(struct json_writer *w, uint64_t value)
{
    char digits[4 + 16];
    size_t at = sizeof digits;
    begin_value(w);
    digits[--at] = '"';
    do
        digits[--at] = "0123456789abcdef"[value & 0xf];
    while (value >>= 4);
    digits[--at] = 'x';
    digits[--at] = '0';
    digits[--at] = '"';
    buffer_append(w->out, digits + at, sizeof digits - at);
}

void json_bool(struct json_writer *w, bool value)
{
    begin_value(w);
    buffer_string(w->out, value ? "true" : "false");
}

void json_raw(struct json_writer *w, struct span json)
{
    begin_value(w);
    buffer_append(w->out, json.data, json.size);
}

void json_absent(struct json_writer *w)
{
    begin_value(w);
    buffer_string(w->out, "null");
}

void json_next(struct json_writer *w)
{
    assert(w->depth == 0 && !w->after_key);
    buffer_u8(w->out, '\n');
    flush(w, JSON_FLUSH_BYTES);
}

static bool writer_result(const struct json_writer *w, struct error *err)
{
    if (w->out->failed)
        return error_set(err, ERROR_LIMIT, "the JSON document is larger than %zu bytes", w->out->ceiling);
    if (w->failed)
        return error_system(err, w->os_error, "cannot write the JSON document");
    return true;
}

bool json_finish(struct json_writer *w, struct error *err)
{
    assert(w->depth == 0 && !w->after_key);
    buffer_u8(w->out, '\n');
    flush(w, 0);
    return writer_result(w, err);
}

bool json_end_lines(struct json_writer *w, struct error *err)
{
    assert(w->depth == 0 && !w->after_key);
    flush(w, 0);
    return writer_result(w, err);
}
