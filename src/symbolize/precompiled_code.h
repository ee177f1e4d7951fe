/*
 * precompiled_code: the methods that the images of one process brought with them already compiled.
 */
#ifndef CLRPERF_SYMBOLIZE_PRECOMPILED_CODE_H
#define CLRPERF_SYMBOLIZE_PRECOMPILED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/symbolizer.h"

/* One method, funclets included, or machine code beside the methods. Texts are valid during the call. */
struct precompiled_method {
    uint32_t image;                /* row of the trace */
    uint64_t file_off, size_bytes; /* where its code lies in the image's file */
    bool is_stub;                  /* its name says what kind: "[R2R stub]" */
    const char *name;              /* the runtime's spelling, see code_name.h */
    const char *type_params;
    const char *module; /* simple name of the assembly that defines it */
};
typedef void precompiled_method_fn(void *user, const struct precompiled_method *method);

/* One image that has been read, after its methods. */
struct precompiled_image {
    uint32_t image;
    const char *build_id; /* of the file when it is ELF, in hex, or "" */
    uint32_t methods;     /* told of, stubs left out */
};
typedef void precompiled_image_fn(void *user, const struct precompiled_image *image);

struct precompiled_result {
    uint32_t images;     /* that have precompiled code */
    uint32_t unreadable; /* assemblies that could not be opened or read: their code has no names */
};

/*
 * Lists the ReadyToRun code in the files that `process` has mapped as code, each file once. Never fails: a
 * file that cannot be read is counted.
 */
void precompiled_code_list(struct trace *t, struct function_index *functions, uint32_t process,
                           const struct file_finder *files, precompiled_method_fn *emit,
                           precompiled_image_fn *emit_image, void *user, struct precompiled_result *out);

#endif
