/*
 * jit_il_map: the IL map of jitted code, read from the memory of its runtime.
 *
 * The first word of a code header points to the debug info: for OSR its patch points first, then the map that
 * read/il_map.h reads. Specified in dotnet/runtime src/coreclr/vm/debuginfostore.cpp of each version.
 */
#ifndef CLRPERF_CLR_JIT_IL_MAP_H
#define CLRPERF_CLR_JIT_IL_MAP_H

#include "base/memory_pages.h"
#include "clr/runtime_layout.h"
#include "read/il_map.h"

/* Versions whose debug info was looked at; another one's is not read. */
enum { JIT_IL_MAP_OLDEST = 3, JIT_IL_MAP_NEWEST = 11 };

/*
 * Reads the map of the code at [begin, begin + size), funclets included, of runtime version `major`.
 * ERROR_UNSUPPORTED when that code has none, as IL stubs have none, or the version is not known;
 * ERROR_INPUT when what is there is not the header of that code. On success the caller ends with
 * il_map_done().
 */
bool jit_il_map_read(struct memory_pages *pages, const struct runtime_layout *layout, unsigned major,
                     uint64_t begin, uint64_t size_bytes, struct il_map *out, struct error *err);
/* Where in a method's debug info its map begins. False when `bytes` ends before that. */
bool jit_il_map_start(struct span bytes, unsigned major, size_t *out_start);

#endif
