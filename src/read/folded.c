#include "read/folded.h"

#include <string.h>

enum { ANNOTATION_BYTES = 4 };

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static uint64_t add_digit(uint64_t value, uint8_t digit)
{
    bool fits = !__builtin_mul_overflow(value, 10, &value) &&
                !__builtin_add_overflow(value, (uint64_t)(digit - '0'), &value);
    return fits ? value : UINT64_MAX;
}

/* "12", "12.5", which is 13 */
static bool parse_count(struct span text, struct folded_line *out)
{
    uint64_t value = 0;
    size_t i = 0;
    bool is_rounded = false;
    for (; i < text.size && is_digit(text.data[i]); i++)
        value = add_digit(value, text.data[i]);
    if (i == 0)
        return false;
    if (i < text.size && text.data[i] == '.') {
        bool is_half = i + 1 < text.size && is_digit(text.data[i + 1]) && text.data[i + 1] >= '5';
        value += is_half && value < UINT64_MAX;
        for (i++; i < text.size && is_digit(text.data[i]); i++)
            is_rounded |= text.data[i] != '0';
    }
    out->count = value;
    out->is_rounded = is_rounded;
    return i == text.size;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool folded_read_line(struct span line, struct folded_line *out)
{
    size_t end = line.size;
    while (end > 0 && is_blank(line.data[end - 1]))
        end--;
    size_t from = end;
    while (from > 0 && !is_blank(line.data[from - 1]))
        from--;
    struct folded_line read = { 0 };
    if (from < 2 || !parse_count(span_part(line, from, end - from), &read))
        return false;
    size_t stack = from - 1;
    while (stack > 0 && is_blank(line.data[stack - 1]))
        stack--;
    if (stack == 0 || memchr(line.data, 0, stack))
        return false;
    read.stack = span_part(line, 0, stack);
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

static bool next_line(struct span text, size_t *pos, struct span *out)
{
    if (*pos >= text.size)
        return false;
    const uint8_t *newline = memchr(text.data + *pos, '\n', text.size - *pos);
    size_t end = newline ? (size_t)(newline - text.data) : text.size;
    *out = span_part(text, *pos, end - *pos);
    *pos = end + 1;
    return true;
}

bool folded_is_stack(struct span line)
{
    return line.size > 0 && line.data[0] != '#' && !(line.size == 1 && line.data[0] == '\r');
}

struct folded_head folded_look(struct span head)
{
    enum { LINES_ENOUGH = 20 };
    struct folded_head seen = { 0 };
    struct span text;
    uint64_t number = 0;
    for (size_t pos = 0; seen.good + seen.bad < LINES_ENOUGH && next_line(head, &pos, &text);) {
        struct folded_line line;
        number++;
        if (!folded_is_stack(text))
            continue;
        if (folded_read_line(text, &line)) {
            seen.good++;
            seen.has_callers |= memchr(line.stack.data, ';', line.stack.size) != NULL;
        } else if (pos <= head.size || seen.good + seen.bad == 0) { /* the last one may be cut */
            seen.bad++;
            seen.first_bad = seen.first_bad ? seen.first_bad : number;
        }
    }
    return seen;
}

bool folded_recognises(struct span head)
{
    if (head.size == 0 || memchr(head.data, 0, head.size))
        return false;
    struct folded_head seen = folded_look(head);
    return seen.bad == 0 ? seen.good > 0 : seen.good >= seen.bad && seen.has_callers;
}
