/*
 * recent_pages: the pages of a process's memory that were read last, each with the time.
 *
 * For who needs many small pieces as they were at some moment or later: one question to the target brings
 * what the next ones want too. No page is older than the one who asks says it may be.
 */
#ifndef CLRPERF_BASE_RECENT_PAGES_H
#define CLRPERF_BASE_RECENT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory_pages.h"

enum { RECENT_PAGES = 16 };

struct recent_pages {
    struct recent_page {
        uint64_t addr, read_ns; /* before it was read, CLOCK_MONOTONIC; 0: there is none */
        uint8_t bytes[MEMORY_PAGE_BYTES];
    } pages[RECENT_PAGES]; /* by address */
};

/* As memory_read(), of what was there at `time_ns` (CLOCK_MONOTONIC) or later. */
bool recent_pages_read(struct recent_pages *recent, const struct memory *memory, uint64_t time_ns,
                       uint64_t addr, void *into, size_t size);

#endif
