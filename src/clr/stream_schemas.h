/*
 * stream_schemas: the schema of each type of event in a stream, made when it is first asked for.
 */
#ifndef CLRPERF_CLR_STREAM_SCHEMAS_H
#define CLRPERF_CLR_STREAM_SCHEMAS_H

#include <stddef.h>
#include <stdint.h>

#include "clr/event_schema.h"
#include "read/nettrace.h"

struct stream_schema {
    const struct nettrace_type *type;
    const uint8_t *fields; /* of a type that was described anew these lie elsewhere */
    uint32_t event_id, version;
    char *provider, *name; /* UTF-8; the name as its provider spells it, "" of the runtime's own */
    struct event_schema *schema;
};

struct stream_schemas {
    struct stream_schema *rows;
    size_t count, capacity;
};

void stream_schemas_init(struct stream_schemas *x);
void stream_schemas_done(struct stream_schemas *x);
/*
 * `type` must stay where it is as long as its reader lives. `pointer_size`: 4 or 8. Never NULL; valid until
 * the next call.
 */
const struct stream_schema *stream_schemas_get(struct stream_schemas *x, const struct nettrace_type *type,
                                               uint32_t pointer_size);

#endif
