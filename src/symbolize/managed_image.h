/*
 * managed_image: one .NET assembly file, asked for the methods in it.
 *
 * Names the precompiled (ReadyToRun) code of an image from the file alone: no runtime, no map, no
 * debug file. Also serves files without such code, for what their metadata knows of a method.
 * Belongs to one thread.
 */
#ifndef CLRPERF_SYMBOLIZE_MANAGED_IMAGE_H
#define CLRPERF_SYMBOLIZE_MANAGED_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/source.h"
#include "clr/code_name.h"
#include "symbolize/assembly_set.h"
#include "symbolize/kept_folder.h"

struct managed_image;

/*
 * Reads the PE file at the start of `file`; for a single-file program the caller passes
 * source_part(). `file` is not kept. `siblings` (borrowed, must live as long as the image; may be
 * NULL) gives the metadata of other assemblies: without it, methods of generic types that other
 * assemblies define keep their names but lose their parameters' names, and the code of a composite
 * image has no names at all. What it takes long to find out of a large one is looked for in `kept` and kept
 * there (NULL: nowhere).
 * ERROR_INPUT when it is not a PE file, ERROR_UNSUPPORTED when nothing in it is managed.
 */
bool managed_image_open(const struct source *file, struct assembly_set *siblings,
                        const struct kept_folder *kept, struct managed_image **out, struct error *err);
/* The same without the tables of its code: for what its metadata alone tells. */
bool managed_image_open_metadata(const struct source *file, struct assembly_set *siblings,
                                 struct managed_image **out, struct error *err);
void managed_image_close(struct managed_image *image);
/* As managed_image_open() was given them: for one that was opened without. */
void managed_image_set_siblings(struct managed_image *image, struct assembly_set *siblings);

/* The assembly's simple name; "" for a composite image, which is no assembly. */
const char *managed_image_name(const struct managed_image *image);
/* 32 hex digits of the module version id, in the order of their bytes; "" for a composite image. */
const char *managed_image_mvid(const struct managed_image *image);
/* False for IL-only files and for components whose code is in a composite image. */
bool managed_image_has_code(const struct managed_image *image);
/* Runtime functions (bodies, funclets): managed_image_function() takes indices below this. */
uint32_t managed_image_function_count(const struct managed_image *image);

/*
 * What lives at a byte of the file (`file_off` from the start of the PE): the method whose body or
 * funclet it is, or the kind of thunk. False when it is no code of this image. A method of an
 * assembly that cannot be found is named "[Assembly]0x06000001".
 */
bool managed_image_find(struct managed_image *image, uint64_t file_off, struct code_name *out);

/* What code was made from. */
struct method_il {
    const char *assembly; /* simple name of the one that defines the method; valid until asked again */
    uint32_t token;       /* 0x06...... */
    bool offset_known;
    uint32_t offset; /* or one of read/il_map.h's marks */
};

/* Loads what managed_image_il() needs. Fails as ready_to_run_load_il_maps(). */
bool managed_image_load_il_maps(struct managed_image *image, const struct source *file, struct error *err);
/* What the code that managed_image_find() named last was made from. False for thunks, or when not known. */
bool managed_image_il(const struct managed_image *image, struct method_il *out);

/* Where a method's code lies, funclets included. */
struct method_range {
    uint32_t begin_rva, end_rva; /* [begin, end) */
    uint64_t begin_off;          /* from the start of the PE file; 0 when it lies in no section */
};
/* The method that owns a runtime function (a body or a funclet). False when none does. */
bool managed_image_function(struct managed_image *image, uint32_t function, struct code_name *out,
                            struct method_range *out_range);
/*
 * Stretches of the file that hold code, methods and all else: stretch 0, 1, ... until false. [*begin_off,
 * *end_off) from the start of the PE file.
 */
bool managed_image_code(const struct managed_image *image, uint32_t stretch, uint64_t *begin_off,
                        uint64_t *end_off);
/* Where the thunks lie that load a method's address at its first call; false when there are none. */
bool managed_image_thunks(const struct managed_image *image, uint64_t *begin_off, uint64_t *end_off);
/*
 * Where the code of the method that managed_image_find() gives lies, funclets included:
 * [*begin_off, *end_off) from the start of the PE file. False for thunks and for parts split off as cold.
 */
bool managed_image_method_range(const struct managed_image *image, uint64_t file_off, uint64_t *begin_off,
                                uint64_t *end_off);

/*
 * What the display needs to know of a MethodDef token (0x06......) of this assembly, as
 * code_name.type_params has it: "TYPE PARAMETERS;METHOD PARAMETERS;KIND" without trailing ';', where
 * both lists are comma-separated names (a nested type's include those of the types around it) and
 * KIND is "async" or "iterator" for the methods of such a state machine. "" when nothing is known.
 * Valid until the image is asked again.
 */
const char *managed_image_type_params(struct managed_image *image, uint32_t method_token);

#endif
