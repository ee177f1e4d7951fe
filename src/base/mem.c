#include "base/mem.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LARGE_PAGE_BYTES = 2 << 20,
    MMAP_THRESHOLD_MAX = 32 << 20, /* the most that M_MMAP_THRESHOLD takes (mallopt(3)) */
};

static void *mem_or_die(void *got)
{
    if (!got) {
        static const char message[] = "clrperf: out of memory\n";
        fputs(message, stderr);
        exit(1);
    }
    return got;
}

void mem_share_heap(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
#endif
}

/* Of what is freed, `bytes` are kept. False where that cannot be had. */
static bool keep_freed(size_t bytes)
{
    mem_share_heap();
#ifdef __GLIBC__
    return mallopt(M_TRIM_THRESHOLD, (int)(2 * bytes)) && mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_MAX);
#else
    (void)bytes;
    return false;
#endif
}

/* A piece of so many bytes or more goes back to the system. */
static void return_pieces(size_t bytes)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, (int)bytes);
#else
    (void)bytes;
#endif
}

void mem_expect(size_t bytes, size_t ready)
{
    if (!keep_freed(bytes))
        return;
    char *grown = malloc(bytes);
    if (grown)
        mem_bring_in(grown, ready);
    free(grown);
    return_pieces(bytes / 8);
}

/* What lies before the first large page of what is expected: nobody gets it, small pages cost more. */
static void *volatile left_out;

void *mem_expect_large(size_t bytes)
{
    size_t taken = bytes + 2 * LARGE_PAGE_BYTES; /* not all of which are of large pages */
    if (!keep_freed(taken))
        return NULL;
    char *grown = malloc(taken);
    uintptr_t first = (uintptr_t)grown;
    uintptr_t begin = (first + LARGE_PAGE_BYTES - 1) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    uintptr_t end = (first + taken) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    bool large = grown && begin < end && madvise((void *)begin, end - begin, MADV_HUGEPAGE) == 0;
    free(grown);
    if (large) /* where they are unknown, all is as ever */
        left_out = malloc(begin - first);
    return_pieces(bytes / 4);
    return large ? (void *)begin : NULL;
}

void mem_bring_in(void *begin, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)begin & ~(page - 1);
    uintptr_t end = ((uintptr_t)begin + size + page - 1) & ~(page - 1);
    madvise((void *)first, end - first, MADV_POPULATE_WRITE);
#else
    (void)begin, (void)size;
#endif
}

void *mem_alloc(size_t count, size_t item_size)
{
    return mem_or_die(calloc(count ? count : 1, item_size ? item_size : 1));
}

void *mem_alloc_lines(size_t count, size_t item_size)
{
    size_t size;
    if (__builtin_mul_overflow(count, item_size, &size) || size > SIZE_MAX - MEM_LINE_BYTES)
        mem_or_die(NULL);
    size = (size + MEM_LINE_BYTES) / MEM_LINE_BYTES * MEM_LINE_BYTES;
    return memset(mem_or_die(aligned_alloc(MEM_LINE_BYTES, size)), 0, size);
}

void *mem_resize(void *old, size_t count, size_t item_size)
{
    size_t size;
    if (__builtin_mul_overflow(count, item_size, &size))
        mem_or_die(NULL);
    return mem_or_die(realloc(old, size ? size : 1));
}

char *mem_copy_string(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(mem_alloc(size, 1), text, size);
}

char *mem_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int size = vasprintf(&text, format, args);
    va_end(args);
    return mem_or_die(size < 0 ? NULL : text);
}

void *mem_grow_more(void *items, size_t *capacity, size_t wanted, size_t item_size)
{
    size_t bigger = *capacity ? *capacity * 2 : 16;
    if (bigger < wanted)
        bigger = wanted;
    *capacity = bigger;
    return mem_resize(items, bigger, item_size);
}
