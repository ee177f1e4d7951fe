/*
 * native_image: the function names of one ELF image.
 *
 * Asks its sources in this order: .symtab; the separate debug file; .gnu_debugdata; .dynsym, only
 * within a symbol's size, never a neighbour's name; the runtime's own tables of {name, function}
 * and of the helpers of jitted code; PLT stubs ("malloc@plt"); and where nobody knows a name, the
 * function's identity from .eh_frame: "libcoreclr.so!0x2f3a10", the address as linked where the
 * function starts. Where .eh_frame is silent, too, the code that refers to functions tells where they
 * start.
 */
#ifndef CLRPERF_SYMBOLIZE_NATIVE_IMAGE_H
#define CLRPERF_SYMBOLIZE_NATIVE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/source.h"
#include "clr/code_name.h"
#include "symbolize/debug_file.h"
#include "symbolize/kept_folder.h"
#include "symbolize/source_lookup.h"

struct native_image; /* belongs to one thread: finding fills caches */

/*
 * Reads the symbols of the image in `file`, whose descriptor or memory is borrowed until the image
 * is closed. `path`, as the target sees it, is for display and for finding debug files with `find`;
 * `find` may be NULL and is not kept. Fails only when it is no ELF file that we read; a source of
 * names that is missing or damaged is passed over.
 */
bool native_image_open(const struct source *file, const char *path, const struct debug_finder *find,
                       struct native_image **out, struct error *err);
/* The kernel's vdso, read from our own memory; the same bytes are in every process. */
bool native_image_open_vdso(struct native_image **out, struct error *err);
void native_image_close(struct native_image *image);
/* From now on what takes long to find out is looked for in `kept`, and kept there. Borrowed; may be NULL. */
void native_image_keep(struct native_image *image, const struct kept_folder *kept);

/*
 * Names the code at `file_off` in the file. C++ and Rust names are demangled, without parameters.
 * *out_function_start is the offset in the file of the function's first byte. The texts in `out` are
 * valid until the image is asked again. False when the image says nothing about the offset.
 */
bool native_image_find(struct native_image *image, uint64_t file_off, struct code_name *out,
                       uint64_t *out_function_start);
/* The same of an address, and with addresses, as linked: also of a debug file, which has no code. */
bool native_image_find_addr(struct native_image *image, uint64_t addr, struct code_name *out,
                            uint64_t *out_function_start);

/*
 * Asks where code at `file_offs` is in its source, by the image's own DWARF or its debug file's. The caller
 * finishes it, also when the image is closed. NULL, or no answers, for an image without, or with one that is
 * too large.
 */
struct source_lookup *native_image_ask_sources(const struct native_image *image, const uint64_t *file_offs,
                                               size_t count);

/* What the first question would read, of a part of the .NET runtime: for who has the time before that. */
void native_image_read_functions(struct native_image *image);

/* In hex; "" when the image has none. */
const char *native_image_build_id(const struct native_image *image);
/* Part of the .NET runtime: libcoreclr.so, libclrjit.so, ..., or a single-file host. */
bool native_image_is_runtime(const struct native_image *image);

#endif
