/*
 * jit_names: names the code that a process generated while it ran.
 *
 * First what the runtime told of its methods, by address and time; then the map or dump that the process
 * left; last the kinds of machine code that belong to no method.
 */
#ifndef CLRPERF_SYMBOLIZE_JIT_NAMES_H
#define CLRPERF_SYMBOLIZE_JIT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "symbolize/naming.h"

/* Names locations of one process. `addrs` are sorted; `locations` go with them. */
void jit_names_answer(struct naming *naming, uint32_t process, const uint64_t *addrs,
                      const uint32_t *locations, size_t count);

#endif
