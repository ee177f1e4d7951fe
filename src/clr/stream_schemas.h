/*
 * stream_schemas: the schema of each type of event in a stream, made when it is first asked for.
 *
 * A type is known by what describes it, so streams of several runtimes share them. A stream may describe its
 * types anew as often as it likes: when there are too many, all are forgotten, and made again for those that
 * still come.
 */
#ifndef CLRPERF_CLR_STREAM_SCHEMAS_H
#define CLRPERF_CLR_STREAM_SCHEMAS_H

#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "clr/event_schema.h"
#include "read/nettrace.h"

enum { STREAM_SCHEMAS_MAX = 4096 };

struct stream_schema {
    uint64_t hash; /* of all that describes it */
    uint32_t event_id, version;
    char *provider, *name; /* UTF-8; the name as its provider spells it, "" of the runtime's own */
    struct event_schema *schema;
};

struct stream_schemas {
    struct stream_schema *rows; /* [0] is unused */
    size_t count, capacity;
    size_t described_bytes; /* what they were made from */
    struct id_map by_hash;
};

void stream_schemas_init(struct stream_schemas *x);
void stream_schemas_done(struct stream_schemas *x);
/* `pointer_size`: 4 or 8. Never NULL; valid until the next call. */
const struct stream_schema *stream_schemas_get(struct stream_schemas *x, const struct nettrace_type *type,
                                               uint32_t pointer_size);

#endif
