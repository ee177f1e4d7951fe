/*
 * stub_sweep: finds the machine code in a stretch of memory that belongs to no method, by its bytes.
 */
#ifndef CLRPERF_CLR_STUB_SWEEP_H
#define CLRPERF_CLR_STUB_SWEEP_H

#include <stdint.h>

#include "base/memory.h"

/* Neighbours of one kind are told as one. `kind` is stub_code.h's. */
typedef void stub_sweep_fn(void *user, uint64_t begin, uint64_t end, const char *kind);

/* Looks at [begin, end); what cannot be read is passed over. */
void stub_sweep(const struct memory *memory, uint64_t begin, uint64_t end, stub_sweep_fn *emit, void *user);

#endif
