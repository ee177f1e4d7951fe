/*
 * images_ahead: images that a thread reads before anybody asks for a name in them.
 */
#ifndef CLRPERF_SYMBOLIZE_IMAGES_AHEAD_H
#define CLRPERF_SYMBOLIZE_IMAGES_AHEAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/image_file.h"
#include "symbolize/symbolizer.h"

enum { IMAGES_AHEAD_MAX = 4 };

/* All of one process. */
struct images_ahead {
    const struct file_finder *files;  /* borrowed */
    const struct symbol_cache *cache; /* or NULL; borrowed */
    const struct kept_folder *kept;   /* or NULL; borrowed */
    uint32_t process;
    char *paths[IMAGES_AHEAD_MAX]; /* owned */
    struct image_file items[IMAGES_AHEAD_MAX];
    size_t count;
    pthread_t thread; /* `items` are its until it is joined */
    bool reading;
};

/* Once. Reads the first IMAGES_AHEAD_MAX of `paths`, as `process` has them. */
void images_ahead_begin(struct images_ahead *ahead, uint32_t process, const char *const *paths, size_t count);
/* Closes those that nobody took. */
void images_ahead_done(struct images_ahead *ahead);
/* Whether it is one of them. NULL is fine. */
bool images_ahead_has(const struct images_ahead *ahead, uint32_t process, const char *path);
/* Waits until all were read. False when it was none of them, or could not be opened; else it is the caller's.
 */
bool images_ahead_take(struct images_ahead *ahead, uint32_t process, const char *path,
                       struct image_file *out);

#endif
