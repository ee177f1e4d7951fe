/*
 * ecma_metadata: the tables and heaps that describe an assembly's types and methods.
 *
 * Specified in ECMA-335 partition II, chapters 22 to 24; portable PDBs add tables 0x30 to 0x37
 * (dotnet/runtime docs/design/specs/PortablePdb-Metadata.md). Rows count from 1. A row, heap offset
 * or column that is not there reads as 0 or as an empty span, so damage shows as missing names. Tables
 * that say they are not sorted (edit-and-continue writes them) are searched in their first 16383 rows only.
 */
#ifndef CLRPERF_READ_ECMA_METADATA_H
#define CLRPERF_READ_ECMA_METADATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/lazy_bytes.h"

enum ecma_table_id {
    ECMA_MODULE = 0x00,
    ECMA_TYPE_REF = 0x01,
    ECMA_TYPE_DEF = 0x02,
    ECMA_FIELD_PTR = 0x03,
    ECMA_FIELD = 0x04,
    ECMA_METHOD_PTR = 0x05,
    ECMA_METHOD_DEF = 0x06,
    ECMA_INTERFACE_IMPL = 0x09,
    ECMA_MEMBER_REF = 0x0a,
    ECMA_TYPE_SPEC = 0x1b,
    ECMA_ASSEMBLY = 0x20,
    ECMA_ASSEMBLY_REF = 0x23,
    ECMA_EXPORTED_TYPE = 0x27,
    ECMA_NESTED_CLASS = 0x29,
    ECMA_GENERIC_PARAM = 0x2a,
    ECMA_METHOD_SPEC = 0x2b,
    ECMA_DOCUMENT = 0x30,
    ECMA_METHOD_DEBUG_INFORMATION = 0x31,
    ECMA_STATE_MACHINE_METHOD = 0x36,
    ECMA_CUSTOM_DEBUG_INFORMATION = 0x37,
    ECMA_TABLES = 0x38
};

/* ECMA-335 II.22: a row's number, and in the highest byte its table. */
static inline uint32_t ecma_token(enum ecma_table_id table, uint32_t row)
{
    return (uint32_t)table << 24 | row;
}

/* Columns, by table. */
enum {
    ECMA_MODULE_NAME = 1,
    ECMA_MODULE_MVID = 2,
    ECMA_TYPE_REF_SCOPE = 0, /* coded: ECMA_SCOPE_... */
    ECMA_TYPE_REF_NAME = 1,
    ECMA_TYPE_REF_NAMESPACE = 2,
    ECMA_TYPE_DEF_FLAGS = 0,
    ECMA_TYPE_DEF_NAME = 1,
    ECMA_TYPE_DEF_NAMESPACE = 2,
    ECMA_TYPE_DEF_FIELDS = 4,
    ECMA_TYPE_DEF_METHODS = 5,
    ECMA_FIELD_FLAGS = 0,
    ECMA_FIELD_NAME = 1,
    ECMA_METHOD_DEF_RVA = 0,
    ECMA_METHOD_DEF_IMPL_FLAGS = 1,
    ECMA_METHOD_DEF_FLAGS = 2,
    ECMA_METHOD_DEF_NAME = 3,
    ECMA_METHOD_DEF_SIGNATURE = 4,
    ECMA_INTERFACE_IMPL_CLASS = 0,
    ECMA_INTERFACE_IMPL_INTERFACE = 1, /* coded: TypeDefOrRef */
    ECMA_MEMBER_REF_PARENT = 0,        /* coded: ECMA_PARENT_... */
    ECMA_MEMBER_REF_NAME = 1,
    ECMA_MEMBER_REF_SIGNATURE = 2,
    ECMA_TYPE_SPEC_SIGNATURE = 0,
    ECMA_ASSEMBLY_NAME = 7,
    ECMA_ASSEMBLY_REF_NAME = 6,
    ECMA_EXPORTED_TYPE_NAME = 2,
    ECMA_EXPORTED_TYPE_NAMESPACE = 3,
    ECMA_EXPORTED_TYPE_IMPLEMENTATION = 4, /* coded: ECMA_IMPLEMENTATION_... */
    ECMA_GENERIC_PARAM_NUMBER = 0,
    ECMA_GENERIC_PARAM_OWNER = 2, /* coded: TypeOrMethodDef */
    ECMA_GENERIC_PARAM_NAME = 3,
    ECMA_DEBUG_INFORMATION_PARENT = 0, /* coded: HasCustomDebugInformation, whose tag of a method is 0 */
    ECMA_DEBUG_INFORMATION_KIND = 1,
    ECMA_DEBUG_INFORMATION_VALUE = 2,
    ECMA_COLUMNS_MAX = 9
};

/* Tags of coded columns, in their low bits. */
enum {
    ECMA_TYPE_TAG_BITS = 2, /* TypeDefOrRef */
    ECMA_TYPE_IS_DEF = 0,
    ECMA_TYPE_IS_REF = 1,
    ECMA_TYPE_IS_SPEC = 2,
    ECMA_SCOPE_TAG_BITS = 2,
    ECMA_SCOPE_IS_ASSEMBLY_REF = 2,
    ECMA_SCOPE_IS_TYPE_REF = 3,
    ECMA_PARENT_TAG_BITS = 3,
    ECMA_PARENT_IS_TYPE_DEF = 0,
    ECMA_PARENT_IS_TYPE_REF = 1,
    ECMA_PARENT_IS_METHOD_DEF = 3,
    ECMA_PARENT_IS_TYPE_SPEC = 4,
    ECMA_IMPLEMENTATION_TAG_BITS = 2,
    ECMA_IMPLEMENTATION_IS_ASSEMBLY_REF = 1,
    ECMA_IMPLEMENTATION_IS_EXPORTED_TYPE = 2,
    ECMA_OWNER_IS_TYPE = 0,
    ECMA_OWNER_IS_METHOD = 1,
    ECMA_DEBUG_INFORMATION_TAG_BITS = 5,
};

struct ecma_table {
    const uint8_t *rows;
    uint32_t count;
    uint8_t row_size; /* bytes */
    uint8_t columns;
    uint8_t offsets[ECMA_COLUMNS_MAX], widths[ECMA_COLUMNS_MAX];
};

struct ecma_metadata {
    struct lazy_bytes *lazy; /* borrowed: reads what is looked at; NULL: all is there */
    struct span strings, blobs, guids;
    struct span pdb; /* stream #Pdb of a portable PDB, or empty */
    uint64_t sorted; /* bit n: table n is sorted by its key */
    struct ecma_table tables[ECMA_TABLES];
};

/* Reads the root and the table directory; `bytes` is borrowed for as long as *out is used. */
bool ecma_metadata_open(struct span bytes, struct ecma_metadata *out, struct error *err);
/* The same of bytes that are read as they are needed. */
bool ecma_metadata_open_lazy(struct lazy_bytes *bytes, struct ecma_metadata *out, struct error *err);

static inline uint32_t ecma_rows(const struct ecma_metadata *md, enum ecma_table_id table)
{
    return md->tables[table].count;
}

uint32_t ecma_cell(const struct ecma_metadata *md, enum ecma_table_id table, uint32_t row, unsigned column);
/* UTF-8, without the NUL that follows; empty when there is none within 16 KiB. */
struct span ecma_string(const struct ecma_metadata *md, uint32_t offset);
struct span ecma_cell_string(const struct ecma_metadata *md, enum ecma_table_id table, uint32_t row,
                             unsigned column);
struct span ecma_blob(const struct ecma_metadata *md, uint32_t offset);
/* 16 bytes, or an empty span. `index` counts from 1. */
struct span ecma_guid(const struct ecma_metadata *md, uint32_t index);
struct span ecma_mvid(const struct ecma_metadata *md);
/* ECMA's big-endian coded unsigned integer (II.23.2). */
uint32_t cursor_ecma_uint(struct cursor *c);

/* The simple name of a type by its coded TypeDefOrRef; empty for a TypeSpec. */
struct span ecma_type_simple_name(const struct ecma_metadata *md, uint32_t token);
/* The TypeDef row that a MethodDef row belongs to, or 0. */
uint32_t ecma_method_owner(const struct ecma_metadata *md, uint32_t method);
/* Whether a MethodDef row belongs to a TypeDef row: the same, for less. */
bool ecma_is_method_of(const struct ecma_metadata *md, uint32_t method, uint32_t type);
/* The MethodDef rows of a type: [*first, *end). Empty when the image has a MethodPtr table. */
void ecma_type_methods(const struct ecma_metadata *md, uint32_t type, uint32_t *first, uint32_t *end);
/* The Field rows of a type: [*first, *end). Empty when the image has a FieldPtr table. */
void ecma_type_fields(const struct ecma_metadata *md, uint32_t type, uint32_t *first, uint32_t *end);
/* The TypeDef row around a nested type, or 0. */
uint32_t ecma_enclosing_type(const struct ecma_metadata *md, uint32_t type);
/* The first GenericParam row of a TypeDef or MethodDef row (`owner_tag`), and how many there are. */
uint32_t ecma_generic_params(const struct ecma_metadata *md, unsigned owner_tag, uint32_t row,
                             uint32_t *out_first);
/* The first InterfaceImpl row of a TypeDef row, and how many there are. */
uint32_t ecma_interfaces(const struct ecma_metadata *md, uint32_t type, uint32_t *out_first);
/* The first CustomDebugInformation row of a MethodDef row, and how many there are. */
uint32_t ecma_method_debug_infos(const struct ecma_metadata *md, uint32_t method, uint32_t *out_first);

#endif
