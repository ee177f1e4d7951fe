/*
 * resident_pages: which pages of a process are in memory now.
 *
 * Reading one that is not would bring it in, for the target too, so code that looks at much asks first.
 * /proc/PID/pagemap, Documentation/admin-guide/mm/pagemap.rst in the Linux source.
 */
#ifndef CLRPERF_COLLECT_RESIDENT_PAGES_H
#define CLRPERF_COLLECT_RESIDENT_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct resident_pages {
    int fd;
    uint64_t page_bytes;
};

/* The caller ends with resident_pages_close(). Fails as the kernel says. */
bool resident_pages_open(pid_t pid, struct resident_pages *out, struct error *err);
void resident_pages_close(struct resident_pages *pages);
/* The first stretch of resident memory in [begin, end), cut to it; false when there is none. */
bool resident_pages_next(const struct resident_pages *pages, uint64_t begin, uint64_t end,
                         uint64_t *out_begin, uint64_t *out_end);

#endif
