/*
 * stub_census: the machine code that a runtime generated beside its methods.
 */
#ifndef CLRPERF_COLLECT_STUB_CENSUS_H
#define CLRPERF_COLLECT_STUB_CENSUS_H

#include <stdint.h>

#include "collect/code_census.h"

/* `kind` is "[fixup precode]" and the like; valid during the call. */
typedef void stub_census_fn(void *user, uint64_t begin, uint64_t end, const char *kind);

/*
 * Tells of stubs in the generated code of a census that holds all methods, as far as their kind is known.
 * Without access to the memory only those are known that have a fixed place. Pages that the process has not
 * in memory are not touched.
 */
void stub_census_list(struct code_census *census, stub_census_fn *emit, void *user);

#endif
