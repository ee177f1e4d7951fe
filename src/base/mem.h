/*
 * mem: allocation of sizes that we choose ourselves; ends the program when memory is gone.
 *
 * Sizes that the input chooses go through struct buffer or struct arena, which have a ceiling.
 */
#ifndef CLRPERF_BASE_MEM_H
#define CLRPERF_BASE_MEM_H

#include <stddef.h>
#include <string.h>

/* Zeroed. The caller frees with free(). */
void *mem_alloc(size_t count, size_t item_size);
/* As mem_alloc(), beginning at a line of the CPU's caches. */
enum { MEM_LINE_BYTES = 64 };
void *mem_alloc_lines(size_t count, size_t item_size);
void *mem_resize(void *old, size_t count, size_t item_size);
/* All threads that are started from now on share one heap. */
void mem_share_heap(void);
/*
 * For who will soon need about `bytes`, at most MEM_EXPECTED_MAX: mem_share_heap(), what is freed of them is
 * kept, and a piece of an eighth of them or more goes back to the system. The first `ready` of them are
 * brought in at once.
 */
enum { MEM_EXPECTED_MAX = 26 << 20 }; /* below what M_MMAP_THRESHOLD can be (mallopt(3)) */
void mem_expect(size_t bytes, size_t ready);
/*
 * The same, and they come in large pages, where the kernel has such, which is faster and takes more memory:
 * then only a piece of a quarter of them or more goes back. Returns where all of them will lie, for
 * mem_bring_in(), by another thread too; NULL when they are as ever.
 */
void *mem_expect_large(size_t bytes);
/*
 * The pages of `size` bytes are there at once, which takes a fraction of what it takes to bring them in one
 * by one as they are written to. Where the kernel (before 5.14) does not know how, nothing happens.
 */
void mem_bring_in(void *begin, size_t size);
char *mem_copy_string(const char *text);
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What mem_grow() does when there is no room. */
void *mem_grow_more(void *items, size_t *capacity, size_t wanted, size_t item_size);

/*
 * Makes room for `wanted` items in a growing array: `items` is reallocated and *capacity raised by
 * doubling when needed. New items are not zeroed.
 */
static inline void *mem_grow(void *items, size_t *capacity, size_t wanted, size_t item_size)
{
    return wanted <= *capacity ? items : mem_grow_more(items, capacity, wanted, item_size);
}

/* The same; new items are zeroed, all up to the capacity. */
static inline void *mem_grow_zeroed(void *items, size_t *capacity, size_t wanted, size_t item_size)
{
    size_t had = *capacity;
    char *rows = (char *)mem_grow(items, capacity, wanted, item_size);
    if (*capacity > had)
        memset(rows + had * item_size, 0, (*capacity - had) * item_size);
    return rows;
}

#endif
