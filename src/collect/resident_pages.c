#include "collect/resident_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory_thread.h"

enum { ENTRY_BYTES = 8, ENTRIES_AT_ONCE = 512 };

#define PAGE_PRESENT (UINT64_C(1) << 63)

bool resident_pages_open(pid_t pid, struct resident_pages *out, struct error *err)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)memory_thread_of(pid));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_system(err, errno, "cannot see which pages of process %d are in memory", (int)pid);
    *out = (struct resident_pages){ fd, (uint64_t)sysconf(_SC_PAGESIZE) };
    return true;
}

void resident_pages_close(struct resident_pages *pages)
{
    close(pages->fd);
    pages->fd = -1;
}

/* How many of the pages from `page` on, at most `count`, are the same as the first, and what that is. */
static uint64_t same_pages(const struct resident_pages *pages, uint64_t page, uint64_t count,
                           bool *out_present)
{
    uint64_t same = 0;
    while (same < count) {
        uint64_t entries[ENTRIES_AT_ONCE];
        uint64_t wanted = count - same < ENTRIES_AT_ONCE ? count - same : ENTRIES_AT_ONCE;
        ssize_t got =
            pread(pages->fd, entries, (size_t)wanted * ENTRY_BYTES, (off_t)((page + same) * ENTRY_BYTES));
        if (got < ENTRY_BYTES)
            break;
        for (size_t i = 0; i < (size_t)got / ENTRY_BYTES; i++, same++) {
            bool present = entries[i] & PAGE_PRESENT;
            if (same == 0)
                *out_present = present;
            else if (present != *out_present)
                return same;
        }
    }
    return same;
}

bool resident_pages_next(const struct resident_pages *pages, uint64_t begin, uint64_t end,
                         uint64_t *out_begin, uint64_t *out_end)
{
    uint64_t page = begin / pages->page_bytes, last = (end + pages->page_bytes - 1) / pages->page_bytes;
    while (begin < end && page < last) {
        bool present = false;
        uint64_t same = same_pages(pages, page, last - page, &present);
        if (same == 0)
            return false;
        if (present) {
            uint64_t from = page * pages->page_bytes, to = (page + same) * pages->page_bytes;
            *out_begin = from > begin ? from : begin;
            *out_end = to < end ? to : end;
            return true;
        }
        page += same;
    }
    return false;
}
