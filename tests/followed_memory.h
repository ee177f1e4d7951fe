/*
 * followed_memory: memory that is asked for whole paths, as that of a running process is, over another one.
 */
#ifndef CLRPERF_TESTS_FOLLOWED_MEMORY_H
#define CLRPERF_TESTS_FOLLOWED_MEMORY_H

#include <string.h>

#include "base/memory.h"
#include "base/memory_path.h"

struct followed_memory {
    struct memory memory;       /* to be asked */
    const struct memory *under; /* borrowed */
    size_t paths;               /* asked for */
    /* of the path under way */
    memory_page_fn *emit;
    void *to;
};

static inline bool followed_peek(void *user, uint64_t addr, void *into, size_t size)
{
    const struct followed_memory *m = user;
    uint8_t page[MEMORY_PAGE_BYTES];
    size_t offset = addr % MEMORY_PAGE_BYTES;
    if (size > MEMORY_PAGE_BYTES - offset || !memory_read(m->under, addr - offset, page, sizeof page))
        return false;
    m->emit(m->to, addr - offset, page);
    memcpy(into, page + offset, size);
    return true;
}

static inline void followed_follow(void *user, const struct memory_path *path, memory_page_fn *emit, void *to)
{
    struct followed_memory *m = user;
    m->paths++;
    m->emit = emit;
    m->to = to;
    memory_path_walk(path, followed_peek, m);
}

static inline void followed_read(void *user, struct memory_piece *pieces, size_t count)
{
    const struct followed_memory *m = user;
    m->under->read(m->under->user, pieces, count);
}

/* `m` stays where it is. */
static inline void followed_memory_init(struct followed_memory *m, const struct memory *under)
{
    *m = (struct followed_memory){ .memory = *under, .under = under };
    m->memory.read = followed_read;
    m->memory.follow = followed_follow;
    m->memory.user = m;
}

#endif
