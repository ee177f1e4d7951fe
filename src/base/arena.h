/*
 * arena: memory that is freed in one call, with a ceiling.
 *
 * It grows by chunks, so what it gave out never moves.
 */
#ifndef CLRPERF_BASE_ARENA_H
#define CLRPERF_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *last;
    size_t used;    /* bytes given out */
    size_t ceiling; /* NULL beyond this */
};

void arena_init(struct arena *a, size_t ceiling);
void arena_done(struct arena *a);
/* Zeroed, aligned for any type; NULL at the ceiling. */
void *arena_array(struct arena *a, size_t count, size_t item_size);
/* A copy of the bytes with a NUL behind; NULL at the ceiling. */
char *arena_string(struct arena *a, struct span text);

#endif
