#include "cli/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/utf8.h"

enum { MESSAGE_BYTES_MAX = 1 << 16 };

bool message_colour(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if ((no_color && *no_color) || !term || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fd);
}

static void append_label(struct buffer *out, const char *colour, const char *label)
{
    if (message_colour(STDERR_FILENO))
        buffer_format(out, "\x1b[%sm%s\x1b[0m", colour, label);
    else
        buffer_string(out, label);
}

/* One write, so that lines of several threads and processes do not mix. */
static void emit(struct buffer *out)
{
    int fd = STDERR_FILENO;
    fflush(stdout);
    (void)json_flush_to_fd(&fd, buffer_span(out));
    buffer_done(out);
}

void message_error(const struct error *err)
{
    struct buffer out;
    buffer_init(&out, MESSAGE_BYTES_MAX);
    append_label(&out, "1;31", "error: ");
    utf8_escape(&out, span_of(err->what, strlen(err->what)));
    buffer_u8(&out, '\n');
    if (*err->hint) {
        append_label(&out, "1", "  try: ");
        utf8_escape(&out, span_of(err->hint, strlen(err->hint)));
        buffer_u8(&out, '\n');
    }
    emit(&out);
}

__attribute__((format(printf, 2, 0))) static void append_text(struct buffer *out, const char *format,
                                                              va_list args)
{
    char text[2048];
    vsnprintf(text, sizeof text, format, args);
    utf8_escape(out, span_of(text, strlen(text)));
    buffer_u8(out, '\n');
}

void message_warning(const char *format, ...)
{
    struct buffer out;
    buffer_init(&out, MESSAGE_BYTES_MAX);
    append_label(&out, "1;33", "warning: ");
    va_list args;
    va_start(args, format);
    append_text(&out, format, args);
    va_end(args);
    emit(&out);
}

void message_note(const char *format, ...)
{
    struct buffer out;
    buffer_init(&out, MESSAGE_BYTES_MAX);
    va_list args;
    va_start(args, format);
    append_text(&out, format, args);
    va_end(args);
    emit(&out);
}

enum exit_code message_exit_code(enum error_kind kind)
{
    switch (kind) {
    case ERROR_NONE:
        return EXIT_OK;
    case ERROR_USAGE:
        return EXIT_USAGE;
    case ERROR_TARGET:
        return EXIT_TARGET;
    case ERROR_PERMISSION:
        return EXIT_PERMISSION;
    case ERROR_UNSUPPORTED:
        return EXIT_UNSUPPORTED;
    case ERROR_INPUT:
    case ERROR_SYSTEM:
    case ERROR_LIMIT:
        break;
    }
    return EXIT_FAILED;
}
