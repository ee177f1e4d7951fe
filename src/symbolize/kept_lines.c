#include "symbolize/kept_lines.h"

#include "base/fd_write.h"
#include "base/own.h"

static bool read_file(int fd, const struct file_stamp *stamp, struct source_answers *out)
{
    struct source file;
    struct buffer bytes;
    buffer_init(&bytes, SOURCE_ANSWERS_BYTES_MAX);
    bool ok = source_over_fd(fd, 0, SOURCE_ANSWERS_BYTES_MAX, &file, NULL) &&
              source_load(&file, 0, file.size, &bytes, NULL) &&
              source_answers_read(buffer_span(&bytes), stamp, out, NULL);
    buffer_done(&bytes);
    return ok;
}

void kept_lines_load(const struct kept_folder *folder, const struct symbol_id *id,
                     const struct file_stamp *stamp, struct source_answers *out)
{
    AUTO_FD int fd = kept_folder_find(folder, id, SYMBOL_CACHE_LINES);
    if (fd < 0 || !read_file(fd, stamp, out))
        source_answers_init(out);
}

static bool write_bytes(void *user, int fd)
{
    const struct buffer *bytes = user;
    return fd_write(fd, buffer_span(bytes));
}

bool kept_lines_save(const struct kept_folder *folder, const struct symbol_id *id,
                     const struct file_stamp *stamp, const struct source_answers *answers, struct error *err)
{
    struct buffer bytes;
    if (answers->count > SOURCE_ANSWERS_MAX)
        return error_set(err, ERROR_LIMIT, "too many source lines to keep");
    buffer_init(&bytes, SOURCE_ANSWERS_BYTES_MAX);
    source_answers_write(answers, stamp, &bytes);
    bool ok = !bytes.failed || error_set(err, ERROR_LIMIT, "too many source lines to keep");
    ok = ok && kept_folder_save(folder, id, SYMBOL_CACHE_LINES, write_bytes, &bytes, err);
    buffer_done(&bytes);
    return ok;
}
