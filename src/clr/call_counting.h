/*
 * call_counting: of which methods the runtime gave up counting the calls.
 *
 * It counts those of code that may be compiled again. Where the compiler optimized the first code at once (it
 * has a loop that cannot be replaced while it runs, or DOTNET_TC_QuickJitForLoops=0) that is for good, and
 * noted: in a hash table by MethodDesc, which the LoaderAllocator has that a heap of code belongs to
 * (CallCountingManager in dotnet/runtime, src/coreclr/vm/callcounting.h; 9 and 10). A method is looked for
 * where it must be, and what is found names it, so that a wrong place finds nothing.
 */
#ifndef CLRPERF_CLR_CALL_COUNTING_H
#define CLRPERF_CLR_CALL_COUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_pages.h"
#include "clr/runtime_layout.h"

/* The table of one heap. */
struct call_counting {
    uint64_t heap;  /* its node, as in struct code_range */
    uint64_t table; /* of pointers */
    uint32_t size;  /* how many; 0: there is no table, or nobody knows where */
};

/* Finds the table, unless *counting is the heap's already. */
void call_counting_open(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t heap,
                        struct call_counting *counting);
/* Asks ahead for where the method (a MethodDesc's address) should be; when that is there, for what it is. */
void call_counting_want_place(struct memory_pages *pages, const struct call_counting *counting,
                              uint64_t method);
void call_counting_want_entry(struct memory_pages *pages, const struct call_counting *counting,
                              uint64_t method);
/* False when they are counted, were counted, or nothing is known of it. */
bool call_counting_is_off(struct memory_pages *pages, const struct call_counting *counting, uint64_t method);

#endif
