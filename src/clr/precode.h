/*
 * precode: the small piece of machine code through which a method is called until, or although, it has code.
 *
 * x86-64, .NET 8 to 10: slots of 24 bytes in pages of 16 KiB; what a slot works with lies at the same place
 * of the page behind. Source: src/coreclr/vm/amd64/thunktemplates.S and precode.h in dotnet/runtime.
 */
#ifndef CLRPERF_CLR_PRECODE_H
#define CLRPERF_CLR_PRECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_pages.h"

enum { PRECODE_BYTES = 24, PRECODE_PAGE_BYTES = 0x4000 };

struct precode {
    uint64_t begin;
    uint64_t method; /* perhaps the address of a MethodDesc */
};

/* The precode that starts at `addr`; false when there is none. */
bool precode_read(struct memory_pages *pages, uint64_t addr, struct precode *out);
/* The one that holds the byte at `addr`. */
bool precode_find(struct memory_pages *pages, uint64_t addr, struct precode *out);

#endif
