#include "clr/stream_schemas.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/utf16.h"

/* A schema takes ten times the bytes of its description, at most. */
enum { TEXT_MAX = 1 << 16, DESCRIBED_BYTES_MAX = 4 << 20 };

void stream_schemas_init(struct stream_schemas *x)
{
    *x = (struct stream_schemas){ 0 };
}

static void clear(struct stream_schemas *x)
{
    for (size_t i = 1; i < x->count; i++) {
        event_schema_free(x->rows[i].schema);
        free(x->rows[i].provider);
        free(x->rows[i].name);
    }
    id_map_clear(&x->by_hash);
    x->count = x->described_bytes = 0;
}

void stream_schemas_done(struct stream_schemas *x)
{
    clear(x);
    id_map_done(&x->by_hash);
    free(x->rows);
    stream_schemas_init(x);
}

static char *text_of(struct span utf16)
{
    struct buffer text;
    buffer_init(&text, TEXT_MAX);
    utf16_append_utf8(&text, utf16);
    buffer_u8(&text, 0);
    char *copy = mem_copy_string(text.failed ? "" : (const char *)text.data);
    buffer_done(&text);
    return copy;
}

static uint64_t hash_span(uint64_t hash, struct span bytes)
{
    return hash_pair(hash, hash_bytes(bytes.data, bytes.size));
}

static struct stream_schema key_of(const struct nettrace_type *type, uint32_t pointer_size)
{
    uint64_t hash = hash_pair((uint64_t)type->event_id << 32 | type->version,
                              (uint64_t)type->opcode << 32 | (uint64_t)type->is_v6 << 8 | pointer_size);
    hash = hash_span(hash_span(hash, type->provider), type->name);
    return (struct stream_schema){ .hash = hash_span(hash_span(hash, type->fields), type->params),
                                   .event_id = type->event_id,
                                   .version = type->version };
}

static bool same_schema(const void *table, uint32_t id, const void *key)
{
    const struct stream_schema *row = &((const struct stream_schemas *)table)->rows[id], *wanted = key;
    return row->hash == wanted->hash && row->event_id == wanted->event_id && row->version == wanted->version;
}

static void make(struct stream_schema *of, const struct nettrace_type *type, uint32_t pointer_size)
{
    of->provider = text_of(type->provider);
    of->name = text_of(type->name);
    of->schema = event_schema_new(&(struct event_description){
        .provider = of->provider,
        .event_id = type->event_id,
        .version = type->version,
        .name = of->name,
        .opcode = type->opcode,
        .fields = type->fields,
        .params = type->params,
        .pointer_size = pointer_size,
        .v6 = type->is_v6,
    });
}

const struct stream_schema *stream_schemas_get(struct stream_schemas *x, const struct nettrace_type *type,
                                               uint32_t pointer_size)
{
    struct stream_schema key = key_of(type, pointer_size);
    uint32_t id = id_map_find(&x->by_hash, key.hash, same_schema, x, &key);
    if (id)
        return &x->rows[id];
    if (x->count > STREAM_SCHEMAS_MAX || x->described_bytes > DESCRIBED_BYTES_MAX)
        clear(x);
    if (x->count == 0)
        x->count = 1;
    make(&key, type, pointer_size);
    id = (uint32_t)x->count++;
    x->described_bytes += type->fields.size + type->params.size;
    x->rows = mem_grow(x->rows, &x->capacity, x->count, sizeof *x->rows);
    x->rows[id] = key;
    id_map_add(&x->by_hash, key.hash, id);
    return &x->rows[id];
}
