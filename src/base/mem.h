/*
 * mem: allocation of sizes that we choose ourselves; ends the program when memory is gone.
 *
 * Sizes that the input chooses go through struct buffer or struct arena, which have a ceiling.
 */
#ifndef CLRPERF_BASE_MEM_H
#define CLRPERF_BASE_MEM_H

#include <stddef.h>

/* Zeroed. The caller frees with free(). */
void *mem_alloc(size_t count, size_t item_size);
/* As mem_alloc(), beginning at a line of the CPU's caches. */
enum { MEM_LINE_BYTES = 64 };
void *mem_alloc_lines(size_t count, size_t item_size);
void *mem_resize(void *old, size_t count, size_t item_size);
/*
 * From now on a large piece goes back to the system when it is freed. Else the C library keeps pieces as
 * large as the largest one that was freed, which saves some time, and is memory that nobody uses.
 */
void mem_keep_little(void);
/*
 * For who will soon need about `bytes` and then ends: they come in a few large pages, where the kernel has
 * such, for to get them one by one takes longer than to fill them. All threads share them.
 */
void mem_expect(size_t bytes);
/* What was freed is the machine's again, also between what is still used. */
void mem_give_back(void);
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

#endif
