/*
 * type_fields: where the fields of a loaded type are, by their names.
 *
 * The runtime's FieldDescs have the offsets, the assembly's metadata the names (dotnet/runtime,
 * src/coreclr/vm/field.h; equal in .NET 8, 9 and 10).
 */
#ifndef CLRPERF_CLR_TYPE_FIELDS_H
#define CLRPERF_CLR_TYPE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "clr/loaded_types.h"

enum {
    OBJECT_FIELDS = 8, /* of an object, behind its MethodTable */
};

#define TYPE_FIELD_NONE UINT32_MAX

struct type_field {
    uint32_t offset; /* in bytes; of an object, from OBJECT_FIELDS on */
    uint8_t element; /* read/ecma_signature.h; ELEMENT_CLASS is any reference */
};

/* `name` is valid during the call. Return false to stop. */
typedef bool type_fields_fn(void *user, struct span name, const struct type_field *field);
/* The instance fields that a type has itself, without those of its base. */
void type_fields_list(struct loaded_types *types, uint64_t table, type_fields_fn *emit, void *user);
/* The field of that name, of the type itself. */
bool type_fields_find(struct loaded_types *types, uint64_t table, const char *name, struct type_field *out);
/* Where that field is in an object of the type, in bytes from its start; TYPE_FIELD_NONE when there is none.
 */
uint32_t type_fields_in_object(struct loaded_types *types, uint64_t table, const char *name);
/* The MethodTable of its base type, or 0. */
uint64_t type_fields_base(struct loaded_types *types, uint64_t table);

#endif
