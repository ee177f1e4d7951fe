/*
 * code_name: what a resolver says about one code address.
 */
#ifndef CLRPERF_CLR_CODE_NAME_H
#define CLRPERF_CLR_CODE_NAME_H

#include <stdint.h>

#include "trace/trace.h"

/* Texts are owned by the resolver and valid until it is asked again. */
struct code_name {
    /*
     * The runtime's or linker's own spelling. Managed: "Ns.Type`1+Nested[Args]::Method(args)" (the
     * signature from its first parenthesis, in EventPipe's dialect, so that a ReadyToRun body and its
     * jitted versions have the same name). C++: demangled.
     */
    const char *name;
    const char
        *module; /* file name, or the assembly's simple name for managed code; "" lets the caller choose */
    const char *type_params; /* "TKey,TValue;TResult;async": see managed_image_type_params(); or "" */
    enum code_kind kind;
    enum code_tier tier;
    enum resolver resolver;
};

#endif
