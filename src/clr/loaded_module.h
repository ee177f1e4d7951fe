/*
 * loaded_module: an assembly that a runtime has loaded, with its metadata.
 *
 * A Module leads to its file's path and to the image in memory. The metadata is read from the file when that
 * is the very one the process has (the same root and the same MVID), so that no page of it has to be brought
 * in for the target; else from memory, as for assemblies out of a bundle or a byte array, and those that the
 * program emits.
 */
#ifndef CLRPERF_CLR_LOADED_MODULE_H
#define CLRPERF_CLR_LOADED_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/memory_pages.h"
#include "base/source.h"
#include "clr/runtime_layout.h"
#include "read/ecma_metadata.h"

/* Opens files as the target sees them; answered by whoever knows the process. */
struct module_files {
    /* False when there is no such file. NULL: no files are to be had. */
    bool (*open)(void *user, const char *path, struct source *out);
    void (*close)(void *user, struct source *file);
    void *user;
};

enum metadata_origin { METADATA_NONE, METADATA_FILE, METADATA_MEMORY, METADATA_EMITTED };

struct loaded_module {
    uint64_t addr;     /* of the Module */
    char *path;        /* as the runtime has it; "" when it is in no file. Owned */
    char *file_path;   /* the same for who opens it: with PROCFS_DELETED when another build lies there now.
                          Owned */
    char *name;        /* the assembly's simple name, "" when unknown. Owned */
    uint8_t origin;    /* enum metadata_origin */
    uint64_t file;     /* address of the PEAssembly, or 0 */
    uint64_t image;    /* address of the PEImage, or 0 */
    uint64_t metadata; /* address of the metadata in the target, or 0 */
    struct lazy_bytes *in_file; /* the metadata, by its origin */
    struct buffer in_memory;
    struct ecma_metadata md;
};

/* The path of a PEImage's file, "" when it has none. The caller frees. */
char *loaded_image_path(struct memory_pages *pages, uint64_t image);
/* Whether the bytes of an image are in memory, by the layout of a PEImage that may be at `addr`, which tells
 * them at `base`. */
bool loaded_image_has_metadata(struct memory_pages *pages, uint64_t addr, uint16_t base);

/* Where the metadata is kept, and how large it is. */
struct span loaded_module_bytes(const struct loaded_module *module);
/* Always fills *out, if only with an address. Undo with loaded_module_done(). */
void loaded_module_read(struct memory_pages *pages, const struct runtime_layout *layout,
                        const struct module_files *files, uint64_t addr, struct loaded_module *out);
void loaded_module_done(struct loaded_module *module);
/* Whether the Module at the address still is what was read; what the program emits grows. The first asks the
 * target for nothing: whether it can be. */
bool loaded_module_can_be_same(const struct loaded_module *module);
bool loaded_module_is_same(struct memory_pages *pages, const struct runtime_layout *layout,
                           const struct loaded_module *module);

#endif
