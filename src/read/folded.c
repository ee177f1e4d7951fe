#include "read/folded.h"

#include <string.h>

enum { ANNOTATION_BYTES = 4 };

/* "12", "12.5" */
static bool parse_count(struct span text, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text.data[i] - '0', &value))
            return false;
    if (i == 0)
        return false;
    if (i < text.size && text.data[i] == '.')
        for (i++; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++)
            ;
    *out = value;
    return i == text.size;
}

bool folded_read_line(struct span line, struct folded_line *out)
{
    size_t end = line.size;
    while (end > 0 && (line.data[end - 1] == ' ' || line.data[end - 1] == '\r' || line.data[end - 1] == '\t'))
        end--;
    size_t from = end;
    while (from > 0 && line.data[from - 1] != ' ' && line.data[from - 1] != '\t')
        from--;
    struct folded_line read = { 0 };
    if (from < 2 || !parse_count(span_part(line, from, end - from), &read.count))
        return false;
    read.stack = span_part(line, 0, from - 1);
    *out = read;
    return true;
}

bool folded_next_frame(struct span *stack, struct span *out_name, char *out_kind)
{
    if (stack->size == 0)
        return false;
    const uint8_t *semicolon = memchr(stack->data, ';', stack->size);
    size_t size = semicolon ? (size_t)(semicolon - stack->data) : stack->size;
    struct span name = { stack->data, size };
    size_t behind = semicolon ? size + 1 : size;
    *stack = span_part(*stack, behind, stack->size - behind);
    *out_kind = 0;
    if (size > ANNOTATION_BYTES) {
        const uint8_t *tail = name.data + size - ANNOTATION_BYTES;
        if (tail[0] == '_' && tail[1] == '[' && tail[3] == ']' && strchr("kjin", tail[2]) && tail[2]) {
            *out_kind = (char)tail[2];
            name.size -= ANNOTATION_BYTES;
        }
    }
    *out_name = name;
    return true;
}

bool folded_recognises(struct span head)
{
    enum { LINES_ENOUGH = 20 };
    size_t pos = 0;
    unsigned lines = 0;
    struct folded_line line;
    if (head.size == 0 || memchr(head.data, 0, head.size))
        return false;
    while (pos < head.size && lines < LINES_ENOUGH) {
        const uint8_t *newline = memchr(head.data + pos, '\n', head.size - pos);
        size_t end = newline ? (size_t)(newline - head.data) : head.size;
        struct span text = span_part(head, pos, end - pos);
        pos = newline ? end + 1 : end;
        if (text.size == 0 || text.data[0] == '#')
            continue;
        /* the last line may be cut by the end of what was looked at */
        if (!folded_read_line(text, &line))
            return lines > 0 && !newline;
        lines++;
    }
    return lines > 0;
}
