/*
 * debug_file: the separate file that holds an image's symbols.
 *
 * Looked for by build id and by the debug link, in the places GDB's manual names ("Separate Debug
 * Files"), then among those that were fetched; and used only when it is proven to belong to the image.
 */
#ifndef CLRPERF_SYMBOLIZE_DEBUG_FILE_H
#define CLRPERF_SYMBOLIZE_DEBUG_FILE_H

#include <stdbool.h>

#include "read/elf.h"
#include "read/symbol_id.h"
#include "symbolize/symbol_cache.h"
#include "symbolize/symbol_place.h"

/* How to open a file that lies beside an image. */
struct debug_finder {
    /*
     * Opens `path`, absolute in the target's root, a regular file, for reading. The caller of the
     * function closes it. -1 when it is not there or not allowed.
     */
    int (*open)(void *user, const char *path);
    void *user;
    const struct symbol_cache *cache; /* or NULL */
};

struct debug_file {
    struct elf elf;
    int fd; /* owned */
    struct symbol_place place;
};

/*
 * Finds and opens the debug file of image `e`, which is displayed as `path`. The build id must
 * agree; an image without one is matched by the checksum in its debug link. False when there is
 * none.
 */
bool debug_file_open(const struct elf *e, const char *path, const struct debug_finder *find,
                     struct debug_file *out);
/* That of an image of which only the build id is known. */
bool debug_file_open_by_id(const struct symbol_id *id, const struct debug_finder *find,
                           struct debug_file *out);
void debug_file_close(struct debug_file *file);

#endif
