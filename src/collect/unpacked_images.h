/*
 * unpacked_images: assemblies that a single-file program holds compressed, and unpacked into its memory.
 *
 * Their code lies in anonymous memory, which nothing but its headers tells from a code heap: sections at
 * their addresses behind the headers of the file (ConvertedImageLayout in dotnet/runtime src/coreclr/vm/
 * peimagelayout.cpp). The headers say which of the program's assemblies it is. Belongs to one thread.
 */
#ifndef CLRPERF_COLLECT_UNPACKED_IMAGES_H
#define CLRPERF_COLLECT_UNPACKED_IMAGES_H

#include <stdint.h>

#include "base/memory.h"
#include "clr/loaded_module.h"
#include "trace/builder.h"

struct unpacked_images;

/* Of one process. `memory` is borrowed, `files` is copied. */
struct unpacked_images *unpacked_images_new(const struct memory *memory, const struct module_files *files);
/* NULL is fine. */
void unpacked_images_free(struct unpacked_images *images);

/*
 * Tells the trace which of the process's anonymous mappings, as far as they are new, are an assembly's; its
 * path is as in read/bundled_file.
 */
void unpacked_images_tell(struct unpacked_images *images, struct trace_builder *b, uint32_t process);
/* All that in one go. */
void unpacked_images_tell_once(const struct memory *memory, const struct module_files *files,
                               struct trace_builder *b, uint32_t process);

#endif
