/*
 * pe_unwind: what the unwinder needs to know of one precompiled .NET image.
 *
 * The exception directory of a ReadyToRun image is its table of runtime functions, each with an UNWIND_INFO
 * (dotnet/runtime docs/design/coreclr/botr/readytorun-format.md).
 */
#ifndef CLRPERF_UNWIND_PE_UNWIND_H
#define CLRPERF_UNWIND_PE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/source.h"
#include "read/pe.h"
#include "read/unwind_format.h"

/* A function (a method's body or a funclet) and what is known of its frame. */
struct unwind_function {
    uint64_t begin, end; /* [begin, end): RVAs, or bytes from a jitted method's start */
    struct span info;    /* as `format` has it; borrowed from the image or the method */
    const struct unwind_format *format;
};

struct pe_unwind;

/*
 * Reads the PE file at the start of `file`, which is not kept. ERROR_UNSUPPORTED when it has no runtime
 * functions of x64 or arm64.
 */
bool pe_unwind_open(const struct source *file, struct pe_unwind **out, struct error *err);
void pe_unwind_close(struct pe_unwind *image);
/* What to take from an address in the target to have an RVA, when file_off (from the PE's start) is at
 * `start`. */
bool pe_unwind_bias(const struct pe_unwind *image, uint64_t start, uint64_t file_off, uint64_t *out_bias);
/* The function around an RVA; false for thunks and padding. */
bool pe_unwind_find(const struct pe_unwind *image, uint64_t rva, struct unwind_function *out);

#endif
