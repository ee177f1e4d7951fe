/*
 * flat_memory: the memory of a target that is an array of bytes at one address.
 */
#ifndef CLRPERF_TESTS_FLAT_MEMORY_H
#define CLRPERF_TESTS_FLAT_MEMORY_H

#include <string.h>

#include "base/memory.h"

struct flat_memory {
    uint64_t base;
    uint8_t *bytes; /* borrowed */
    size_t size;    /* what is there of them: a cut dump has fewer */
};

/* For struct memory; `user` is a flat_memory. */
static inline void flat_memory_read(void *user, struct memory_piece *pieces, size_t count)
{
    const struct flat_memory *m = user;
    for (size_t i = 0; i < count; i++) {
        struct memory_piece *p = &pieces[i];
        uint64_t at = p->addr - m->base;
        p->got = p->addr < m->base || at >= m->size ? 0
                 : m->size - at < p->size           ? m->size - (size_t)at
                                                    : p->size;
        if (p->got)
            memcpy(p->into, m->bytes + at, p->got);
    }
}

static inline void flat_memory_put64(const struct flat_memory *m, uint64_t addr, uint64_t value)
{
    memcpy(m->bytes + (addr - m->base), &value, sizeof value);
}

static inline void flat_memory_put32(const struct flat_memory *m, uint64_t addr, uint32_t value)
{
    memcpy(m->bytes + (addr - m->base), &value, sizeof value);
}

#endif
