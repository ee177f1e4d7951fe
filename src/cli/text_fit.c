#include "cli/text_fit.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"

enum { WRAPPED_BYTES_MAX = 256 << 20, WRAP_ROOM_MIN = 16 };

size_t text_columns(int fd)
{
    struct winsize size;
    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void text_cut(struct buffer *out, struct span text, size_t columns, bool pad)
{
    struct cursor c = cursor_over(text);
    size_t width = utf8_width(text), used = 0;
    size_t room = width > columns && columns ? columns - 1 : columns;
    while (cursor_left(&c) && used < room) {
        utf8_append(out, utf8_next(&c));
        used++;
    }
    if (width > columns && columns) {
        buffer_string(out, "…");
        used++;
    }
    while (pad && used++ < columns)
        buffer_u8(out, ' ');
}

static struct span up_to(struct span text, char end)
{
    const uint8_t *at = text.size ? memchr(text.data, end, text.size) : NULL;
    return span_of(text.data, at ? (size_t)(at - text.data) : text.size);
}

static struct span behind(struct span text, size_t count)
{
    count = count < text.size ? count : text.size;
    return span_of(text.data + count, text.size - count);
}

static void wrap_line(struct span line, size_t indent, size_t width, struct buffer *out)
{
    size_t used = 0;
    bool fresh = true; /* nothing but the indent is in this line of the terminal */
    while (line.size) {
        struct span word = up_to(line, ' ');
        size_t columns = utf8_width(word);
        if (!fresh && used + columns > width) {
            while (out->size && out->data[out->size - 1] == ' ')
                out->size--;
            buffer_format(out, "\n%*s", (int)indent, "");
            used = indent;
        }
        buffer_append(out, word.data, word.size);
        line = behind(line, word.size);
        used += columns;
        fresh = fresh && !columns;
        if (line.size) {
            buffer_u8(out, ' ');
            line = behind(line, 1);
            used++;
        }
    }
}

void text_wrap(struct buffer *text, size_t from, size_t indent, size_t width)
{
    if (!width)
        return;
    struct buffer out;
    buffer_init(&out, WRAPPED_BYTES_MAX);
    if (width < indent + WRAP_ROOM_MIN)
        indent = 0;
    struct span rest = behind(buffer_span(text), from);
    while (rest.size) {
        struct span line = up_to(rest, '\n');
        if (utf8_width(line) > width)
            wrap_line(line, indent, width, &out);
        else
            buffer_append(&out, line.data, line.size);
        rest = behind(rest, line.size);
        if (rest.size)
            buffer_u8(&out, '\n');
        rest = behind(rest, 1);
    }
    text->size = from < text->size ? from : text->size;
    buffer_append(text, out.data, out.size);
    buffer_done(&out);
}
