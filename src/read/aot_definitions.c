#include "read/aot_definitions.h"

#include <stdlib.h>

#include "base/mem.h"
#include "read/native_format.h"

enum {
    SCOPES_AT = 4,         /* behind the magic number */
    DEPTH_MAX = 32,        /* of namespaces and types in each other */
    RECORDS_MAX = 8 << 20, /* a web service of 10 MB has 5,600 */
    NUMBERS_OF_A_VERSION = 4,
};

struct walk {
    const struct aot_metadata *md;
    struct aot_definitions *out;
    uint32_t records_left;
    bool failed;
};

/* Where each record of a list is. */
typedef void record_fn(struct walk *w, uint32_t place, unsigned depth);

static bool may_read(struct walk *w, unsigned depth)
{
    w->failed |= w->records_left == 0 || depth > DEPTH_MAX;
    w->records_left -= w->records_left > 0;
    return !w->failed;
}

static void each(struct walk *w, struct cursor *c, record_fn *take, unsigned depth)
{
    uint32_t count = cursor_native_uint(c);
    for (uint32_t i = 0; i < count && cursor_ok(c) && !w->failed; i++) {
        uint32_t place = cursor_native_uint(c);
        if (!take)
            may_read(w, 0); /* to pass over it takes time, too */
        else if (cursor_ok(c))
            take(w, place, depth);
    }
    w->failed |= !cursor_ok(c);
}

static struct cursor record_at(const struct walk *w, uint32_t place)
{
    struct cursor c = cursor_over(w->md->bytes);
    cursor_seek(&c, place);
    return c;
}

static void skip_numbers(struct cursor *c, int count)
{
    while (count-- > 0)
        cursor_native_uint(c);
}

static void take_methods(struct walk *w, struct cursor *c, uint32_t owner)
{
    uint32_t count = cursor_native_uint(c);
    for (uint32_t i = 0; i < count && cursor_ok(c) && may_read(w, 0); i++) {
        struct aot_definitions *out = w->out;
        out->rows = mem_grow(out->rows, &out->capacity, out->count + 1, sizeof *out->rows);
        out->rows[out->count++] = (struct aot_definition){ cursor_native_uint(c), owner };
    }
    w->failed |= !cursor_ok(c);
}

static void take_type(struct walk *w, uint32_t place, unsigned depth)
{
    struct cursor c = record_at(w, place);
    if (!may_read(w, depth))
        return;
    skip_numbers(&c, 7); /* flags, base, namespace, name, size, packing, type around it */
    each(w, &c, take_type, depth + 1);
    take_methods(w, &c, aot_metadata_type_token(w->md, place));
}

static void take_namespace(struct walk *w, uint32_t place, unsigned depth)
{
    struct cursor c = record_at(w, place);
    if (!may_read(w, depth))
        return;
    skip_numbers(&c, 2); /* the one around it, name */
    each(w, &c, take_type, depth + 1);
    each(w, &c, NULL, 0); /* types that are elsewhere now */
    each(w, &c, take_namespace, depth + 1);
}

static void take_scope(struct walk *w, uint32_t place, unsigned depth)
{
    struct cursor c = record_at(w, place);
    if (!may_read(w, depth))
        return;
    skip_numbers(&c, 3 + NUMBERS_OF_A_VERSION); /* flags, name, how it is hashed */
    cursor_skip(&c, cursor_native_uint(&c));    /* key */
    cursor_native_uint(&c);                     /* culture */
    uint32_t root = cursor_native_uint(&c);
    w->failed |= !cursor_ok(&c);
    take_namespace(w, root, depth + 1);
}

static int compare(const void *a, const void *b)
{
    const struct aot_definition *x = a, *y = b;
    return (x->method > y->method) - (x->method < y->method);
}

static void join_same(struct aot_definitions *d)
{
    size_t kept = 0;
    if (d->count > 1)
        qsort(d->rows, d->count, sizeof *d->rows, compare);
    for (size_t i = 0; i < d->count; i++) {
        if (kept && d->rows[kept - 1].method == d->rows[i].method)
            d->rows[kept - 1].owner = 0;
        else
            d->rows[kept++] = d->rows[i];
    }
    d->count = kept;
}

bool aot_definitions_read(const struct aot_metadata *md, struct aot_definitions *out, struct error *err)
{
    *out = (struct aot_definitions){ 0 };
    struct walk w = { .md = md, .out = out, .records_left = RECORDS_MAX };
    struct cursor scopes = record_at(&w, SCOPES_AT);
    each(&w, &scopes, take_scope, 0);
    if (w.failed) {
        aot_definitions_done(out);
        return error_set(err, w.records_left ? ERROR_INPUT : ERROR_LIMIT,
                         "the types of a Native AOT program cannot be followed");
    }
    join_same(out);
    return true;
}

void aot_definitions_done(struct aot_definitions *definitions)
{
    free(definitions->rows);
    *definitions = (struct aot_definitions){ 0 };
}

uint32_t aot_definitions_owner(const struct aot_definitions *definitions, uint32_t method)
{
    struct aot_definition key = { .method = method };
    const struct aot_definition *found =
        definitions->count ? bsearch(&key, definitions->rows, definitions->count, sizeof key, compare) : NULL;
    return found ? found->owner : 0;
}

uint32_t aot_definitions_name(const struct aot_metadata *md, uint32_t method)
{
    struct cursor c = cursor_over(md->bytes);
    cursor_seek(&c, method);
    skip_numbers(&c, 2); /* flags, those of its implementation */
    return cursor_native_uint(&c);
}
