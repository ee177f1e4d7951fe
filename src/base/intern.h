/*
 * intern: a set of strings, each named by an id.
 *
 * Id 0 is the empty string. Text is kept with a NUL behind; it may hold any other byte.
 */
#ifndef CLRPERF_BASE_INTERN_H
#define CLRPERF_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/id_map.h"

struct intern {
    struct arena text;
    const char **strings; /* by id */
    uint32_t *sizes;
    size_t count; /* ids are below */
    size_t capacity, sizes_capacity;
    struct id_map ids;
};

/* `ceiling`: bytes of text it may hold; past it intern_add() answers 0. */
void intern_init(struct intern *set, size_t ceiling);
void intern_done(struct intern *set);
uint32_t intern_add(struct intern *set, struct span text);
uint32_t intern_cstr(struct intern *set, const char *text);
/* Adds it as the next id, also when the same text has an id already. False at the ceiling. */
bool intern_append(struct intern *set, struct span text);
/* "" for an id that is not in the set. Valid as long as the set. */
const char *intern_text(const struct intern *set, uint32_t id);
struct span intern_span(const struct intern *set, uint32_t id);

#endif
