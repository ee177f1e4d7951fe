/*
 * method_path: where jitted code leads to in the runtime's memory, to be read ahead in one go.
 */
#ifndef CLRPERF_CLR_METHOD_PATH_H
#define CLRPERF_CLR_METHOD_PATH_H

#include "base/memory_path.h"
#include "clr/runtime_layout.h"

/*
 * From the word before the code at `start` to all that tells its method, version, unwind data and IL map.
 * `range_begin`: of the region of code, which unwind data counts from; 0: not known, then that is left out.
 * What lies there is as untrusted as ever: who reads it checks it.
 */
void method_path_of(const struct runtime_layout *layout, uint64_t range_begin, uint64_t start,
                    struct memory_path *out);
/* To unwind data and IL map alone. */
void method_path_of_unwinding(const struct runtime_layout *layout, uint64_t range_begin, uint64_t start,
                              struct memory_path *out);
/* To the debug info alone, which holds the IL map. */
void method_path_of_debug_info(uint64_t start, struct memory_path *out);

#endif
