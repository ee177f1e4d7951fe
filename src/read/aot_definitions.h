/*
 * aot_definitions: the types that the metadata of a Native AOT program defines, with their methods: those
 * that reflection may ask for.
 */
#ifndef CLRPERF_READ_AOT_DEFINITIONS_H
#define CLRPERF_READ_AOT_DEFINITIONS_H

#include "read/aot_metadata.h"

/* The type of a method's record; types can share one, which then tells of none. */
struct aot_definition {
    uint32_t method; /* where the record is */
    uint32_t owner;  /* token; 0: several */
};

struct aot_definitions {
    struct aot_definition *rows; /* by `method` */
    size_t count, capacity;
};

/* ERROR_INPUT when the metadata is damaged, ERROR_LIMIT when it has too many. Undo with the next one. */
bool aot_definitions_read(const struct aot_metadata *md, struct aot_definitions *out, struct error *err);
void aot_definitions_done(struct aot_definitions *definitions);
/* The token of its type; 0 when that is not known. */
uint32_t aot_definitions_owner(const struct aot_definitions *definitions, uint32_t method);
/* Where a method's name is, of its record; 0 when that is damaged. */
uint32_t aot_definitions_name(const struct aot_metadata *md, uint32_t method);

#endif
