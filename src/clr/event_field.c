#include "clr/event_field.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { NAMES_CEILING = 1 << 20 };

void event_fields_init(struct event_fields *f)
{
    *f = (struct event_fields){ 0 };
    arena_init(&f->names, NAMES_CEILING);
}

void event_fields_done(struct event_fields *f)
{
    free(f->rows);
    arena_done(&f->names);
}

uint32_t event_fields_add(struct event_fields *f, size_t count)
{
    if (count > EVENT_FIELDS_MAX - f->count)
        return UINT32_MAX;
    uint32_t first = (uint32_t)f->count;
    f->rows = mem_grow(f->rows, &f->capacity, f->count + count, sizeof *f->rows);
    if (count)
        memset(f->rows + f->count, 0, count * sizeof *f->rows);
    f->count += count;
    return first;
}
