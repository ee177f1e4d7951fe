#include "symbolize/image_file.h"

#include <unistd.h>

static bool open_bytes(const struct image_file *file, struct source *out)
{
    return source_over_fd(file->fd, 0, UINT64_MAX, out, NULL);
}

bool image_file_is_managed(const struct image_file *file)
{
    uint8_t magic[2] = { 0 };
    struct source bytes;
    return open_bytes(file, &bytes) && source_read(&bytes, 0, magic, sizeof magic, NULL) && magic[0] == 'M' &&
           magic[1] == 'Z';
}

void image_file_read(struct image_file *file, const char *path, const struct debug_finder *debug,
                     const struct kept_folder *kept)
{
    if (file->native || file->managed || !open_bytes(file, &file->bytes))
        return;
    if (image_file_is_managed(file))
        managed_image_open(&file->bytes, NULL, kept, &file->managed, NULL);
    else if (native_image_open(&file->bytes, path, debug, &file->native, NULL))
        native_image_keep(file->native, kept);
}

void image_file_drop(struct image_file *file)
{
    native_image_close(file->native);
    managed_image_close(file->managed);
    file->native = NULL;
    file->managed = NULL;
}

void image_file_close(struct image_file *file)
{
    image_file_drop(file);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}
