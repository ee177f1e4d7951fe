/*
 * late_names: names for functions of a capture that were only told apart when it was made.
 *
 * "libcoreclr.so!0x2f3a10" is the function at that address of an image whose build id the capture has. When
 * the image's symbols were fetched since, it has a name.
 */
#ifndef CLRPERF_SYMBOLIZE_LATE_NAMES_H
#define CLRPERF_SYMBOLIZE_LATE_NAMES_H

#include "symbolize/symbol_cache.h"
#include "trace/function_index.h"
#include "trace/trace.h"

/* `functions` indexes those of `t`. */
void late_names_add(struct trace *t, struct function_index *functions, const struct symbol_cache *cache);

#endif
