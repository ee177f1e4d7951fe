/*
 * image_symbols: what symbols an image asks for, and where they are.
 *
 * Looks where native_image and source_lines look, so that what is found here is what names get.
 */
#ifndef CLRPERF_SYMBOLIZE_IMAGE_SYMBOLS_H
#define CLRPERF_SYMBOLIZE_IMAGE_SYMBOLS_H

#include <stdbool.h>

#include "symbolize/debug_file.h"

struct image_symbols {
    bool managed;        /* an assembly, else native code */
    bool lines;          /* what was found tells source lines */
    struct symbol_id id; /* size 0: nothing that could be asked for */
    char pdb_name[256];  /* file name of an assembly's PDB, else "" */
    struct symbol_place place;
};

/*
 * Of the image in `file`, which its process has at `path`. ERROR_INPUT or ERROR_UNSUPPORTED when it is
 * neither ELF nor an assembly.
 */
bool image_symbols_find(const struct source *file, const char *path, const struct debug_finder *find,
                        struct image_symbols *out, struct error *err);
/* Of native code that is not at hand. */
void image_symbols_find_by_id(const struct symbol_id *id, const struct debug_finder *find,
                              struct image_symbols *out);

#endif
