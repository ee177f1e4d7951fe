#include "clr/stream_schemas.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/utf16.h"

enum { TEXT_MAX = 1 << 16 };

void stream_schemas_init(struct stream_schemas *x)
{
    *x = (struct stream_schemas){ 0 };
}

void stream_schemas_done(struct stream_schemas *x)
{
    for (size_t i = 0; i < x->count; i++) {
        event_schema_free(x->rows[i].schema);
        free(x->rows[i].provider);
        free(x->rows[i].name);
    }
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

static struct stream_schema make(const struct nettrace_type *type, uint32_t pointer_size)
{
    struct stream_schema made = {
        .type = type,
        .fields = type->fields.data,
        .event_id = type->event_id,
        .version = type->version,
        .provider = text_of(type->provider),
        .name = text_of(type->name),
    };
    made.schema = event_schema_new(&(struct event_description){
        .provider = made.provider,
        .event_id = type->event_id,
        .version = type->version,
        .name = made.name,
        .opcode = type->opcode,
        .fields = type->fields,
        .params = type->params,
        .pointer_size = pointer_size,
    });
    return made;
}

const struct stream_schema *stream_schemas_get(struct stream_schemas *x, const struct nettrace_type *type,
                                               uint32_t pointer_size)
{
    for (size_t i = 0; i < x->count; i++) {
        const struct stream_schema *row = &x->rows[i];
        if (row->type == type && row->fields == type->fields.data && row->event_id == type->event_id &&
            row->version == type->version)
            return row;
    }
    x->rows = mem_grow(x->rows, &x->capacity, x->count + 1, sizeof *x->rows);
    x->rows[x->count] = make(type, pointer_size);
    return &x->rows[x->count++];
}
