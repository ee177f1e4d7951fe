/*
 * nettrace_types: the event descriptions of one stream, by the id the stream gave them.
 */
#ifndef CLRPERF_READ_NETTRACE_TYPES_H
#define CLRPERF_READ_NETTRACE_TYPES_H

#include "base/arena.h"
#include "read/nettrace.h"
#include "read/nettrace_header.h"

struct nettrace_types {
    struct arena arena;
    struct nettrace_type none;    /* stands for all that are not described; of no events */
    struct nettrace_type **by_id; /* of all short ids at least */
    size_t count;
};

void nettrace_types_init(struct nettrace_types *t);
void nettrace_types_done(struct nettrace_types *t);
/* &t->none when the stream has not described it. */
static inline struct nettrace_type *nettrace_types_at(struct nettrace_types *t, uint32_t id)
{
    return id < t->count ? t->by_id[id] : &t->none;
}
/* NULL when the stream has not described it. */
static inline struct nettrace_type *nettrace_types_find(struct nettrace_types *t, uint32_t id)
{
    struct nettrace_type *type = nettrace_types_at(t, id);
    return type != &t->none ? type : NULL;
}

enum nettrace_type_change { NETTRACE_TYPE_BAD, NETTRACE_TYPE_NEW, NETTRACE_TYPE_SAME, NETTRACE_TYPE_REFUSED };
/* Forgets all descriptions: their ids may be used again. What was given out stays valid. */
void nettrace_types_clear(struct nettrace_types *t);
/* The same as below for a row of nettrace 6. */
enum nettrace_type_change nettrace_types_define_v6(struct nettrace_types *t, struct span row,
                                                   struct nettrace_type **out);
/*
 * Reads a metadata record's payload. NEW: *out is the type, described for the first time or anew.
 * REFUSED: our bounds are reached. BAD: the record is malformed.
 */
enum nettrace_type_change nettrace_types_define(struct nettrace_types *t, struct span payload,
                                                struct nettrace_type **out);

#endif
