/*
 * image_file: the file of an image that code was mapped from, and what tells the names in it: those of an ELF
 * file, or of an assembly.
 */
#ifndef CLRPERF_SYMBOLIZE_IMAGE_FILE_H
#define CLRPERF_SYMBOLIZE_IMAGE_FILE_H

#include <stdbool.h>

#include "base/source.h"
#include "symbolize/managed_image.h"
#include "symbolize/native_image.h"

/* Both NULL until it was read, and when it is neither. */
struct image_file {
    int fd; /* -1: none. Owned */
    struct source bytes;
    struct native_image *native;
    struct managed_image *managed;
};

/* Whether it looks like an assembly; `fd` is open. */
bool image_file_is_managed(const struct image_file *file);
/*
 * Does nothing when that was done. `path` and `debug` as native_image_open() takes them. `kept` is where what
 * takes long to find out is kept, or NULL.
 */
void image_file_read(struct image_file *file, const char *path, const struct debug_finder *debug,
                     const struct kept_folder *kept);
/* Forgets what was read. */
void image_file_drop(struct image_file *file);
void image_file_close(struct image_file *file);

#endif
