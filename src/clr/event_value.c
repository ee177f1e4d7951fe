#include "clr/event_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/float_text.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"

enum { FILETIME_PER_SECOND = 10000000 };
static const int64_t filetime_seconds_of_1970 = 11644473600;

void event_value_append_text(struct buffer *out, const struct event_value *v)
{
    if (v->kind == EVENT_VALUE_TEXT16)
        utf16_append_utf8(out, v->bytes);
    else if (v->kind == EVENT_VALUE_TEXT8)
        buffer_append(out, v->bytes.data, v->bytes.size);
}

void event_value_append_whole(struct buffer *out, const struct event_value *v)
{
    if (v->kind == EVENT_VALUE_TEXT16)
        utf16_append_whole(out, v->bytes);
    else
        event_value_append_text(out, v);
}

/* Who shows it takes a NUL for its end. */
static void append_shown(struct buffer *out, const struct event_value *v)
{
    size_t at = out->size;
    event_value_append_whole(out, v);
    if (out->size == at || !memchr(out->data + at, 0, out->size - at))
        return;
    size_t size = out->size - at;
    AUTO_FREE uint8_t *text = mem_alloc(size, 1);
    memcpy(text, out->data + at, size);
    out->size = at;
    for (size_t i = 0; i < size; i++) {
        if (text[i])
            buffer_u8(out, text[i]);
        else
            buffer_string(out, "\\x00");
    }
}

bool event_value_is_number(const struct event_value *v)
{
    return v->kind >= EVENT_VALUE_BOOL && v->kind <= EVENT_VALUE_FLOAT;
}

static void append_guid(struct buffer *out, struct span id)
{
    if (id.size != 16)
        return;
    const uint8_t *b = id.data;
    buffer_hex(out, load_u32le(b), 8);
    buffer_u8(out, '-');
    buffer_hex(out, load_u16le(b + 4), 4);
    buffer_u8(out, '-');
    buffer_hex(out, load_u16le(b + 6), 4);
    buffer_u8(out, '-');
    buffer_hex(out, (uint64_t)b[8] << 8 | b[9], 4);
    buffer_u8(out, '-');
    for (unsigned i = 10; i < 16; i++)
        buffer_hex(out, b[i], 2);
}

/* Counted from 1601: what is earlier, as a DateTime that was never set, arrives as 0. */
static void append_time(struct buffer *out, uint64_t filetime)
{
    time_t seconds = (time_t)(filetime / FILETIME_PER_SECOND) - filetime_seconds_of_1970;
    struct tm utc;
    if (gmtime_r(&seconds, &utc))
        buffer_format(out, "%04d-%02d-%02dT%02d:%02d:%02d.%07" PRIu64 "Z", utc.tm_year + 1900, utc.tm_mon + 1,
                      utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, filetime % FILETIME_PER_SECOND);
}

void event_value_append(struct buffer *out, const struct event_value *v)
{
    if (v->names && event_enum_append(out, v->names, v->u))
        return;
    switch (v->kind) {
    case EVENT_VALUE_NONE:
        return;
    case EVENT_VALUE_BOOL:
        buffer_string(out, v->u ? "true" : "false");
        return;
    case EVENT_VALUE_INT:
        buffer_format(out, "%" PRId64, v->i);
        return;
    case EVENT_VALUE_UINT:
        buffer_format(out, "%" PRIu64, v->u);
        return;
    case EVENT_VALUE_POINTER:
        buffer_append(out, "0x", 2);
        buffer_hex(out, v->u, 1);
        return;
    case EVENT_VALUE_FLOAT:
        buffer_string(out, v->size == 4 ? float_text((float)v->f).text : double_text(v->f).text);
        return;
    case EVENT_VALUE_TEXT16:
    case EVENT_VALUE_TEXT8:
        append_shown(out, v);
        return;
    case EVENT_VALUE_GUID:
        append_guid(out, v->bytes);
        return;
    case EVENT_VALUE_TIME:
        append_time(out, v->u);
        return;
    case EVENT_VALUE_ARRAY:
        buffer_format(out, "[%" PRIu64 " items]", v->u);
        return;
    case EVENT_VALUE_BYTES:
    case EVENT_VALUE_OBJECT:
        buffer_format(out, "{%zu bytes}", v->bytes.size);
        return;
    }
}
