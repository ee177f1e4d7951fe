/*
 * debug_file: the separate file that holds an image's symbols.
 *
 * Looked for by build id and by the debug link, in the places GDB's manual names ("Separate Debug
 * Files"), and used only when it is proven to belong to the image.
 */
#ifndef CLRPERF_SYMBOLIZE_DEBUG_FILE_H
#define CLRPERF_SYMBOLIZE_DEBUG_FILE_H

#include <stdbool.h>

#include "read/elf.h"

/* How to open a file that lies beside an image. */
struct debug_finder {
    /*
     * Opens `path`, absolute in the target's root, a regular file, for reading. The caller of the
     * function closes it. -1 when it is not there or not allowed.
     */
    int (*open)(void *user, const char *path);
    void *user;
};

/*
 * Finds and opens the debug file of image `e`, which is displayed as `path`. The build id must
 * agree; an image without one is matched by the checksum in its debug link. False when there is
 * none. The caller closes *out_fd after elf_done().
 */
bool debug_file_open(const struct elf *e, const char *path, const struct debug_finder *find, int *out_fd,
                     struct elf *out);

#endif
