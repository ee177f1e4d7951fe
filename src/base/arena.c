#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct arena_chunk {
    struct arena_chunk *previous;
    size_t size, used;
    alignas(max_align_t) uint8_t bytes[];
};

/* Each chunk is larger than the one before, as many arenas hold a few names only. */
enum { FIRST_CHUNK_BYTES = 1024, CHUNK_BYTES_MAX = 64 * 1024 };

void arena_init(struct arena *a, size_t ceiling)
{
    *a = (struct arena){ .ceiling = ceiling };
}

void arena_done(struct arena *a)
{
    while (a->last) {
        struct arena_chunk *previous = a->last->previous;
        free(a->last);
        a->last = previous;
    }
    a->used = 0;
}

static struct arena_chunk *add_chunk(struct arena *a, size_t size)
{
    size_t bytes = FIRST_CHUNK_BYTES;
    if (a->last)
        bytes = a->last->size < CHUNK_BYTES_MAX / 2 ? 2 * a->last->size : CHUNK_BYTES_MAX;
    if (bytes < size)
        bytes = size;
    struct arena_chunk *chunk = mem_alloc(1, sizeof *chunk + bytes);
    chunk->previous = a->last;
    chunk->size = bytes;
    a->last = chunk;
    return chunk;
}

static void *arena_take(struct arena *a, size_t size, size_t alignment)
{
    struct arena_chunk *chunk = a->last;
    size_t start = chunk ? (chunk->used + alignment - 1) & ~(alignment - 1) : 0;
    if (!chunk || start > chunk->size || size > chunk->size - start) {
        chunk = add_chunk(a, size);
        start = 0;
    }
    chunk->used = start + size;
    a->used += size;
    return chunk->bytes + start;
}

void *arena_array(struct arena *a, size_t count, size_t item_size)
{
    size_t size;
    if (__builtin_mul_overflow(count, item_size, &size) || size > a->ceiling - a->used)
        return NULL;
    return arena_take(a, size, alignof(max_align_t));
}

char *arena_string(struct arena *a, struct span text)
{
    if (text.size >= a->ceiling - a->used)
        return NULL;
    char *copy = arena_take(a, text.size + 1, 1);
    if (text.size)
        memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    return copy;
}
