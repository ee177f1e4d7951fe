#include "read/tracepoint_format.h"

#include <string.h>

/* The next line, without its newline and the tab before it; false at the end. */
static bool next_line(struct span *rest, struct span *out)
{
    if (!rest->size)
        return false;
    const uint8_t *end = memchr(rest->data, '\n', rest->size);
    *out = span_of(rest->data, end ? (size_t)(end - rest->data) : rest->size);
    *rest = span_part(*rest, out->size + 1, rest->size - out->size - (end ? 1 : 0));
    while (out->size && (*out->data == '\t' || *out->data == ' '))
        *out = span_part(*out, 1, out->size - 1);
    return true;
}

/* The decimal number behind `key`, the first in the text. */
static bool number_behind(struct span text, const char *key, uint32_t *out)
{
    size_t key_size = strlen(key);
    const uint8_t *found = text.size ? memmem(text.data, text.size, key, key_size) : NULL;
    if (!found)
        return false;
    const uint8_t *at = found + key_size, *end = text.data + text.size;
    uint32_t value = 0;
    size_t digits = 0;
    while (at < end && *at == ' ')
        at++;
    for (; at < end && *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
        value = value * 10 + (uint32_t)(*at - '0');
    *out = value;
    return digits > 0;
}

/* `field:unsigned char comm[16];` : the last word, without the length of an array. */
static struct span name_of(struct span declaration)
{
    const uint8_t *bracket = declaration.size ? memchr(declaration.data, '[', declaration.size) : NULL;
    size_t end = bracket ? (size_t)(bracket - declaration.data) : declaration.size, begin = end;
    while (begin && declaration.data[begin - 1] != ' ' && declaration.data[begin - 1] != '*')
        begin--;
    return span_part(declaration, begin, end - begin);
}

bool tracepoint_format_id(struct span text, uint32_t *out)
{
    for (struct span line; next_line(&text, &line);)
        if (span_begins(line, "ID:"))
            return number_behind(line, "ID:", out);
    return false;
}

bool tracepoint_format_field(struct span text, const char *name, struct tracepoint_field *out)
{
    for (struct span line; next_line(&text, &line);) {
        const uint8_t *semicolon = line.size ? memchr(line.data, ';', line.size) : NULL;
        if (!semicolon || !span_begins(line, "field:"))
            continue;
        size_t declared = (size_t)(semicolon - line.data);
        struct span rest = span_part(line, declared, line.size - declared);
        uint32_t offset, size;
        if (!span_equals(name_of(span_part(line, 0, declared)), span_of(name, strlen(name))))
            continue;
        if (!number_behind(rest, "offset:", &offset) || !number_behind(rest, "size:", &size) ||
            offset > UINT16_MAX || size > UINT16_MAX - offset)
            return false;
        *out = (struct tracepoint_field){ (uint16_t)offset, (uint16_t)size };
        return true;
    }
    return false;
}
