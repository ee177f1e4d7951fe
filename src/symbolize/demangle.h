/*
 * demangle: the spelling of a C++ or Rust symbol that people know.
 */
#ifndef CLRPERF_SYMBOLIZE_DEMANGLE_H
#define CLRPERF_SYMBOLIZE_DEMANGLE_H

#include <stdbool.h>

#include "base/buffer.h"

enum { DEMANGLED_BYTES_MAX = 4096 };

/*
 * Replaces the content of `out` by the NUL-ended source spelling of `mangled`, without parameters.
 * False when it is not mangled, not valid, or would be longer than DEMANGLED_BYTES_MAX (a short
 * mangled name can spell out to any length): show the raw name then.
 */
bool demangle(const char *mangled, struct buffer *out);

#endif
