#include "cli/standard_output.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int stdout_fd = STDOUT_FILENO;

bool stdout_text(const struct buffer *text, struct error *err)
{
    if (text->failed)
        return error_set(err, ERROR_LIMIT, "the result is larger than %zu bytes", text->ceiling);
    fflush(stdout);
    if (!json_flush_to_fd((void *)&stdout_fd, buffer_span(text)))
        return error_system(err, errno, "cannot write the result to standard output");
    return true;
}

void stdout_json(struct json_writer *w, struct buffer *buffer)
{
    buffer_init(buffer, OUTPUT_BYTES_MAX);
    fflush(stdout);
    json_init_stream(w, buffer, json_flush_to_fd, (void *)&stdout_fd);
}

size_t stdout_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
        return 0;
    return size.ws_col;
}
