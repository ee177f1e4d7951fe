#include "cli/standard_output.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/text_fit.h"

static const int stdout_fd = STDOUT_FILENO;

bool stdout_refused(int os_error, struct error *err)
{
    error_system(err, os_error, "cannot write the result to standard output");
    if (os_error == ENOSPC || os_error == EDQUOT)
        error_hint(err, "free some space, or send it to another place");
    return false;
}

bool stdout_text(const struct buffer *text, struct error *err)
{
    if (text->failed)
        return error_set(err, ERROR_LIMIT, "the result is larger than %zu bytes", text->ceiling);
    fflush(stdout);
    if (!json_flush_to_fd((void *)&stdout_fd, buffer_span(text)))
        return stdout_refused(errno, err);
    return true;
}

void stdout_json(struct json_writer *w, struct buffer *buffer)
{
    buffer_init(buffer, OUTPUT_BYTES_MAX);
    fflush(stdout);
    json_init_stream(w, buffer, json_flush_to_fd, (void *)&stdout_fd);
}

static bool stdout_ended(struct json_writer *w, bool ok, struct error *err)
{
    if (!ok && w->failed)
        stdout_refused(err ? err->os_error : 0, err);
    buffer_done(w->out);
    return ok;
}

bool stdout_json_end(struct json_writer *w, struct error *err)
{
    return stdout_ended(w, json_finish(w, err), err);
}

bool stdout_json_end_lines(struct json_writer *w, struct error *err)
{
    return stdout_ended(w, json_end_lines(w, err), err);
}

size_t stdout_width(void)
{
    return text_columns(STDOUT_FILENO);
}
