#include "base/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void intern_push(struct intern *set, const char *text, uint32_t size)
{
    set->strings = mem_grow(set->strings, &set->capacity, set->count + 1, sizeof *set->strings);
    set->sizes = mem_grow(set->sizes, &set->sizes_capacity, set->count + 1, sizeof *set->sizes);
    set->strings[set->count] = text;
    set->sizes[set->count] = size;
    set->count++;
}

void intern_init(struct intern *set, size_t ceiling)
{
    *set = (struct intern){ 0 };
    arena_init(&set->text, ceiling);
    intern_push(set, "", 0);
}

void intern_done(struct intern *set)
{
    arena_done(&set->text);
    free(set->strings);
    free(set->sizes);
    id_map_done(&set->ids);
    *set = (struct intern){ 0 };
}

static bool intern_same(const void *table, uint32_t id, const void *key)
{
    const struct intern *set = table;
    return span_equals(span_of(set->strings[id], set->sizes[id]), *(const struct span *)key);
}

uint32_t intern_add(struct intern *set, struct span text)
{
    if (text.size == 0 || text.size > UINT32_MAX)
        return 0;
    uint64_t hash = hash_bytes(text.data, text.size);
    uint32_t id = id_map_find(&set->ids, hash, intern_same, set, &text);
    if (id)
        return id;
    const char *copy = arena_string(&set->text, text);
    if (!copy || set->count >= UINT32_MAX)
        return 0;
    id = (uint32_t)set->count;
    intern_push(set, copy, (uint32_t)text.size);
    id_map_add(&set->ids, hash, id);
    return id;
}

bool intern_append(struct intern *set, struct span text)
{
    const char *copy =
        text.size <= UINT32_MAX && set->count < UINT32_MAX ? arena_string(&set->text, text) : NULL;
    if (!copy)
        return false;
    /* one id of equal texts is enough to find; many under one hash would make every look-up slow */
    uint64_t hash = hash_bytes(copy, text.size);
    if (text.size && !id_map_find(&set->ids, hash, intern_same, set, &text))
        id_map_add(&set->ids, hash, (uint32_t)set->count);
    intern_push(set, copy, (uint32_t)text.size);
    return true;
}

uint32_t intern_cstr(struct intern *set, const char *text)
{
    return intern_add(set, span_of(text, strlen(text)));
}

const char *intern_text(const struct intern *set, uint32_t id)
{
    return id < set->count ? set->strings[id] : "";
}

struct span intern_span(const struct intern *set, uint32_t id)
{
    return id < set->count ? span_of(set->strings[id], set->sizes[id]) : span_of("", 0);
}
