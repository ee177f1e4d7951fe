/*
 * symbol_images: the images of a process, a core dump, a capture or a file, each with the symbols it has.
 */
#ifndef CLRPERF_CLI_SYMBOL_IMAGES_H
#define CLRPERF_CLI_SYMBOL_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/target_select.h"
#include "symbolize/image_symbols.h"

/* Whose images are asked for. */
struct symbol_subject {
    struct target_query target; /* when there is no `file` */
    const char *file;           /* a core dump, a capture, an ELF file or an assembly; or NULL */
    const char *const *names;   /* globs on the path or its last part; none: all */
    size_t name_count;
    bool native, managed; /* only these; both or neither: all */
};

struct symbol_image {
    char *path;    /* as the process sees it; owned */
    char *problem; /* why the image could not be read, or NULL; owned */
    struct image_symbols symbols;
};

struct symbol_images {
    struct symbol_image *rows; /* native code first, by file name; owned */
    size_t count, capacity;
    pid_t pid;       /* 0 when it is no process */
    char label[256]; /* what people call it */
    char root[32];   /* before paths of files that were found, so that they lead there from here; mostly "" */
};

/* Fails as target_select() and as the readers do. The caller ends *out with symbol_images_done(). */
bool symbol_images_find(const struct symbol_subject *subject, const struct symbol_cache *cache,
                        struct symbol_images *out, struct error *err);
void symbol_images_done(struct symbol_images *images);
/* Where the symbols of an image are, as anybody can open it; "" when nowhere. The caller frees. */
char *symbol_images_found(const struct symbol_images *images, const struct symbol_image *image);

#endif
