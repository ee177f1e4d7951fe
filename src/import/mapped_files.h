/*
 * mapped_files: what the files are that the processes of an imported file had mapped, by their paths.
 */
#ifndef CLRPERF_IMPORT_MAPPED_FILES_H
#define CLRPERF_IMPORT_MAPPED_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/builder.h"

enum image_kind mapped_file_kind(struct span path);

/* In which images threads begin: a stack that ends there is whole. */
struct root_images {
    unsigned char *known; /* by image: 0 not looked at, 1 they do, 2 they do not */
    size_t capacity;
};

/* Whether a thread of the process can have begun at `addr`, which something is mapped at. */
bool root_images_have(struct root_images *roots, const struct trace_builder *b, uint32_t process,
                      uint64_t addr);
void root_images_done(struct root_images *roots);

#endif
