/*
 * r2r_signature: the bytes with which a ReadyToRun image names an instance of a generic method.
 *
 * Specified in dotnet/runtime docs/design/coreclr/botr/readytorun-format.md, "Method Signatures".
 */
#ifndef CLRPERF_READ_R2R_SIGNATURE_H
#define CLRPERF_READ_R2R_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

struct r2r_method_signature {
    uint32_t module;    /* index of the module whose tokens all of this uses; 0: the image's own */
    struct span owner;  /* a type, or empty: the method's own type, which is not generic */
    bool is_member_ref; /* `row` is a MemberRef row, else a MethodDef row */
    uint32_t row;
    bool is_awaited; /* the form of an asynchronous method that is awaited, not the one that returns a Task */
    uint32_t argument_count;
    struct span arguments; /* that many types: the method's own instantiation */
};

/* Reads one and leaves the cursor behind it. False when it is damaged or of an unknown form. */
bool cursor_r2r_method_signature(struct cursor *c, struct r2r_method_signature *out);

#endif
