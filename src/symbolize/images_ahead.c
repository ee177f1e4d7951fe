#include "symbolize/images_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"

static int open_file(void *user, const char *path)
{
    const struct images_ahead *ahead = user;
    return ahead->files->open ? ahead->files->open(ahead->files->user, ahead->process, path) : -1;
}

static void *read_all(void *user)
{
    struct images_ahead *ahead = user;
    struct debug_finder debug = { open_file, ahead, ahead->cache };
    for (size_t i = 0; i < ahead->count; i++) {
        struct image_file *file = &ahead->items[i];
        file->fd = open_file(ahead, ahead->paths[i]);
        if (file->fd >= 0)
            image_file_read(file, ahead->paths[i], &debug, ahead->kept);
        if (file->native)
            native_image_read_functions(file->native);
    }
    return NULL;
}

static void await(struct images_ahead *ahead)
{
    if (ahead->reading)
        pthread_join(ahead->thread, NULL);
    ahead->reading = false;
}

void images_ahead_begin(struct images_ahead *ahead, uint32_t process, const char *const *paths, size_t count)
{
    ahead->process = process;
    ahead->count = count < IMAGES_AHEAD_MAX ? count : IMAGES_AHEAD_MAX;
    for (size_t i = 0; i < ahead->count; i++)
        ahead->paths[i] = mem_copy_string(paths[i]);
    ahead->reading = thread_start(&ahead->thread, read_all, ahead);
    if (!ahead->reading)
        read_all(ahead);
}

void images_ahead_done(struct images_ahead *ahead)
{
    await(ahead);
    for (size_t i = 0; i < ahead->count; i++) {
        image_file_close(&ahead->items[i]);
        free(ahead->paths[i]);
    }
    ahead->count = 0;
}

static size_t find(const struct images_ahead *ahead, uint32_t process, const char *path)
{
    size_t i = 0;
    while (i < ahead->count && (ahead->process != process || strcmp(ahead->paths[i], path) != 0))
        i++;
    return i;
}

bool images_ahead_has(const struct images_ahead *ahead, uint32_t process, const char *path)
{
    return ahead && find(ahead, process, path) < ahead->count;
}

bool images_ahead_take(struct images_ahead *ahead, uint32_t process, const char *path, struct image_file *out)
{
    if (!images_ahead_has(ahead, process, path))
        return false;
    await(ahead);
    struct image_file *file = &ahead->items[find(ahead, process, path)];
    *out = *file;
    *file = (struct image_file){ .fd = -1 };
    return out->fd >= 0;
}
