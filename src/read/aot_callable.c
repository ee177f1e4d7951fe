#include "read/aot_callable.h"

#include <stdlib.h>

#include "base/mem.h"
#include "read/aot_definitions.h"
#include "read/native_format.h"

enum {
    PLACE_BYTES = 4,
    TYPES_MAX = 4 << 20,
    HAS_CODE = 0x20, /* of a row's flags */
};

struct type_place {
    uint64_t addr;
    uint32_t token;
};

struct walk {
    const struct aot_metadata *md;
    const struct aot_tables *tables;
    struct type_place *types; /* by address */
    size_t type_count, type_capacity;
    struct aot_definitions definitions;
    aot_method_fn *each;
    void *user;
};

/* The next number of a row, as what it stands for. */
static bool read_place(const struct aot_tables *t, struct cursor *c, uint64_t *out)
{
    uint64_t off = (uint64_t)PLACE_BYTES * cursor_native_uint(c);
    struct span distance = span_part(t->places, off, PLACE_BYTES);
    if (!cursor_ok(c) || distance.size < PLACE_BYTES)
        return false;
    *out = t->places_addr + off + (uint64_t)(int64_t)(int32_t)load_u32le(distance.data);
    return true;
}

static bool take_type(void *user, struct cursor c)
{
    struct walk *w = user;
    struct type_place type;
    bool ok = read_place(w->tables, &c, &type.addr);
    type.token = cursor_native_uint(&c);
    if (!ok || !cursor_ok(&c))
        return true;
    w->types = mem_grow(w->types, &w->type_capacity, w->type_count + 1, sizeof *w->types);
    w->types[w->type_count++] = type;
    return w->type_count < TYPES_MAX;
}

static int compare(const void *a, const void *b)
{
    const struct type_place *x = a, *y = b;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* By its place; of an instance of a generic type, which has none of its own there, by whose the record is. */
static uint32_t owner_of(const struct walk *w, uint64_t type, uint32_t method)
{
    struct type_place key = { .addr = type };
    const struct type_place *found =
        w->type_count ? bsearch(&key, w->types, w->type_count, sizeof key, compare) : NULL;
    if (found && aot_metadata_is_type(w->md, found->token))
        return found->token;
    return aot_definitions_owner(&w->definitions, method);
}

static bool take_method(void *user, struct cursor c)
{
    struct walk *w = user;
    uint64_t type;
    struct aot_method method = { 0 };
    uint32_t flags = cursor_native_uint(&c), record = cursor_native_uint(&c);
    if (!read_place(w->tables, &c, &type) || !(flags & HAS_CODE) || !read_place(w->tables, &c, &method.addr))
        return true;
    method.owner = owner_of(w, type, record);
    method.name = aot_definitions_name(w->md, record);
    return !method.owner || !method.name || w->each(w->user, &method);
}

void aot_callable_each(const struct aot_metadata *md, const struct aot_tables *tables, aot_method_fn *each,
                       void *user)
{
    struct walk w = { .md = md, .tables = tables, .each = each, .user = user };
    if (!aot_definitions_read(md, &w.definitions, NULL))
        return;
    native_hashtable_each(tables->types, take_type, &w, NULL);
    if (w.type_count > 1)
        qsort(w.types, w.type_count, sizeof *w.types, compare);
    native_hashtable_each(tables->callable, take_method, &w, NULL);
    aot_definitions_done(&w.definitions);
    free(w.types);
}
