#include "read/ecma_metadata.h"

#include <string.h>

#include "base/own.h"

enum {
    ROOT_SIGNATURE = 0x424a5342, /* "BSJB" */
    STREAMS_MAX = 32,
    HEAP_STRINGS_WIDE = 1,
    HEAP_GUIDS_WIDE = 2,
    HEAP_BLOBS_WIDE = 4,
    HEAP_EXTRA_DATA = 0x40,
    ROOT_BYTES_MAX = 4096, /* the version and the names of streams */
    TABLES_HEADER_BYTES = 28 + 4 * ECMA_TABLES,
    PDB_ID_BYTES = 20,
    STRING_BYTES_MAX = 16 << 10,
    NAME_BYTES = 256, /* most strings are shorter */
    ECMA_UINT_BYTES_MAX = 4,
    /* What one look-up sees: any number of names may ask for the same rows. */
    UNSORTED_ROWS_MAX = 1 << 14,
    ROWS_OF_KEY_MAX = 1 << 16,
};

/* What a column holds: a number, a heap offset, a row of one table, or a row of one of several. */
enum {
    U2 = 1,
    U4 = 2,
    S = 3, /* #Strings */
    G = 4, /* #GUID */
    B = 5, /* #Blob */
    ROW_BIT = 0x40,
    CODED_BIT = 0x80,
};
#define ROW(table) (ROW_BIT | (table))

enum coded {
    TYPE_DEF_OR_REF = CODED_BIT,
    HAS_CONSTANT,
    HAS_CUSTOM_ATTRIBUTE,
    HAS_FIELD_MARSHAL,
    HAS_DECL_SECURITY,
    MEMBER_REF_PARENT,
    HAS_SEMANTICS,
    METHOD_DEF_OR_REF,
    MEMBER_FORWARDED,
    IMPLEMENTATION,
    CUSTOM_ATTRIBUTE_TYPE,
    RESOLUTION_SCOPE,
    TYPE_OR_METHOD_DEF,
    HAS_CUSTOM_DEBUG_INFORMATION,
};

static const struct {
    uint8_t tag_bits;
    uint64_t tables; /* bit n: table n can be meant */
} coded_columns[] = {
#define T(n) (1ull << (n))
    { 2, T(2) | T(1) | T(0x1b) },
    { 2, T(4) | T(8) | T(0x17) },
    { 5, T(6) | T(4) | T(1) | T(2) | T(8) | T(9) | T(0xa) | T(0) | T(0xe) | T(0x17) | T(0x14) | T(0x11) |
             T(0x1a) | T(0x1b) | T(0x20) | T(0x23) | T(0x26) | T(0x27) | T(0x28) | T(0x2a) | T(0x2c) |
             T(0x2b) },
    { 1, T(4) | T(8) },
    { 2, T(2) | T(6) | T(0x20) },
    { 3, T(2) | T(1) | T(0x1a) | T(6) | T(0x1b) },
    { 1, T(0x14) | T(0x17) },
    { 1, T(6) | T(0xa) },
    { 1, T(4) | T(6) },
    { 2, T(0x26) | T(0x23) | T(0x27) },
    { 3, T(6) | T(0xa) },
    { 2, T(0) | T(0x1a) | T(0x23) | T(1) },
    { 1, T(2) | T(6) },
    { 5, T(6) | T(4) | T(1) | T(2) | T(8) | T(9) | T(0xa) | T(0) | T(0xe) | T(0x17) | T(0x14) | T(0x11) |
             T(0x1a) | T(0x1b) | T(0x20) | T(0x23) | T(0x26) | T(0x27) | T(0x28) | T(0x2a) | T(0x2c) |
             T(0x2b) | T(0x30) | T(0x32) | T(0x33) | T(0x34) | T(0x35) },
#undef T
};

/* ECMA-335 II.22, by table number; each row of this table ends with 0. */
static const uint8_t schema[ECMA_TABLES][ECMA_COLUMNS_MAX + 1] = {
    [0x00] = { U2, S, G, G, G },
    [0x01] = { RESOLUTION_SCOPE, S, S },
    [0x02] = { U4, S, S, TYPE_DEF_OR_REF, ROW(4), ROW(6) },
    [0x03] = { ROW(4) },
    [0x04] = { U2, S, B },
    [0x05] = { ROW(6) },
    [0x06] = { U4, U2, U2, S, B, ROW(8) },
    [0x07] = { ROW(8) },
    [0x08] = { U2, U2, S },
    [0x09] = { ROW(2), TYPE_DEF_OR_REF },
    [0x0a] = { MEMBER_REF_PARENT, S, B },
    [0x0b] = { U2, HAS_CONSTANT, B },
    [0x0c] = { HAS_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_TYPE, B },
    [0x0d] = { HAS_FIELD_MARSHAL, B },
    [0x0e] = { U2, HAS_DECL_SECURITY, B },
    [0x0f] = { U2, U4, ROW(2) },
    [0x10] = { U4, ROW(4) },
    [0x11] = { B },
    [0x12] = { ROW(2), ROW(0x14) },
    [0x13] = { ROW(0x14) },
    [0x14] = { U2, S, TYPE_DEF_OR_REF },
    [0x15] = { ROW(2), ROW(0x17) },
    [0x16] = { ROW(0x17) },
    [0x17] = { U2, S, B },
    [0x18] = { U2, ROW(6), HAS_SEMANTICS },
    [0x19] = { ROW(2), METHOD_DEF_OR_REF, METHOD_DEF_OR_REF },
    [0x1a] = { S },
    [0x1b] = { B },
    [0x1c] = { U2, MEMBER_FORWARDED, S, ROW(0x1a) },
    [0x1d] = { U4, ROW(4) },
    [0x1e] = { U4, U4 },
    [0x1f] = { U4 },
    [0x20] = { U4, U2, U2, U2, U2, U4, B, S, S },
    [0x21] = { U4 },
    [0x22] = { U4, U4, U4 },
    [0x23] = { U2, U2, U2, U2, U4, B, S, S, B },
    [0x24] = { U4, ROW(0x23) },
    [0x25] = { U4, U4, U4, ROW(0x23) },
    [0x26] = { U4, S, B },
    [0x27] = { U4, U4, S, S, IMPLEMENTATION },
    [0x28] = { U4, U4, S, IMPLEMENTATION },
    [0x29] = { ROW(2), ROW(2) },
    [0x2a] = { U2, U2, TYPE_OR_METHOD_DEF, S },
    [0x2b] = { METHOD_DEF_OR_REF, B },
    [0x2c] = { ROW(0x2a), TYPE_DEF_OR_REF },
    [0x30] = { B, G, B, G },
    [0x31] = { ROW(0x30), B },
    [0x32] = { ROW(6), ROW(0x35), ROW(0x33), ROW(0x34), U4, U4 },
    [0x33] = { U2, U2, S },
    [0x34] = { S, B },
    [0x35] = { ROW(0x35), B },
    [0x36] = { ROW(6), ROW(6) },
    [0x37] = { HAS_CUSTOM_DEBUG_INFORMATION, G, B },
};

static uint8_t column_width(uint8_t kind, const uint32_t *counts, uint8_t heap_sizes)
{
    if (kind & CODED_BIT) {
        uint32_t limit = 1u << (16 - coded_columns[kind & ~CODED_BIT].tag_bits);
        for (unsigned t = 0; t < ECMA_TABLES; t++)
            if (coded_columns[kind & ~CODED_BIT].tables >> t & 1 && counts[t] >= limit)
                return 4;
        return 2;
    }
    if (kind & ROW_BIT)
        return counts[kind & ~ROW_BIT] > 0xffff ? 4 : 2;
    switch (kind) {
    case U4:
        return 4;
    case S:
        return heap_sizes & HEAP_STRINGS_WIDE ? 4 : 2;
    case G:
        return heap_sizes & HEAP_GUIDS_WIDE ? 4 : 2;
    case B:
        return heap_sizes & HEAP_BLOBS_WIDE ? 4 : 2;
    default:
        return 2;
    }
}

static void lay_out_table(struct ecma_table *table, const uint8_t *kinds, const uint32_t *counts,
                          uint8_t heap_sizes)
{
    for (; kinds[table->columns]; table->columns++) {
        unsigned i = table->columns;
        table->offsets[i] = table->row_size;
        table->widths[i] = column_width(kinds[i], counts, heap_sizes);
        table->row_size = (uint8_t)(table->row_size + table->widths[i]);
    }
}

/* `at` will be looked at. */
static inline void need(const struct ecma_metadata *md, const uint8_t *at, size_t size)
{
    if (md->lazy)
        lazy_bytes_need(md->lazy, at, size);
}

static bool read_tables(struct span bytes, const uint32_t *referenced_counts, struct ecma_metadata *md,
                        struct error *err)
{
    struct cursor c = cursor_over(bytes);
    need(md, bytes.data, TABLES_HEADER_BYTES);
    cursor_skip(&c, 6);
    uint8_t heap_sizes = cursor_u8(&c);
    cursor_skip(&c, 1);
    uint64_t valid = cursor_u64le(&c);
    md->sorted = cursor_u64le(&c);
    if (valid >> ECMA_TABLES)
        return error_set(err, ERROR_UNSUPPORTED, "metadata with a table of unknown number");
    uint32_t counts[ECMA_TABLES];
    for (unsigned t = 0; t < ECMA_TABLES; t++) {
        md->tables[t].count = valid >> t & 1 ? cursor_u32le(&c) : 0;
        counts[t] = md->tables[t].count ? md->tables[t].count : referenced_counts[t];
    }
    if (heap_sizes & HEAP_EXTRA_DATA)
        cursor_skip(&c, 4);
    for (unsigned t = 0; t < ECMA_TABLES; t++) {
        struct ecma_table *table = &md->tables[t];
        lay_out_table(table, schema[t], counts, heap_sizes);
        if (table->count == 0)
            continue;
        if (table->row_size == 0)
            return error_set(err, ERROR_UNSUPPORTED, "metadata with table 0x%x", t);
        table->rows = cursor_bytes(&c, (uint64_t)table->count * table->row_size).data;
    }
    return cursor_finish(&c, err, "metadata tables");
}

/* #Pdb: id, entry point, then the row counts of the tables of the assembly that the PDB describes. */
static void read_referenced_counts(struct span pdb, uint32_t *counts)
{
    struct cursor c = cursor_over(pdb);
    cursor_skip(&c, PDB_ID_BYTES + 4);
    uint64_t referenced = cursor_u64le(&c);
    for (unsigned t = 0; t < ECMA_TABLES; t++)
        counts[t] = referenced >> t & 1 ? cursor_u32le(&c) : 0;
}

static bool open_metadata(struct span bytes, struct lazy_bytes *lazy, struct ecma_metadata *out,
                          struct error *err)
{
    struct ecma_metadata md = { .lazy = lazy };
    struct cursor c =
        cursor_over(span_part(bytes, 0, bytes.size < ROOT_BYTES_MAX ? bytes.size : ROOT_BYTES_MAX));
    need(&md, bytes.data, ROOT_BYTES_MAX);
    if (cursor_u32le(&c) != ROOT_SIGNATURE)
        return error_set(err, ERROR_INPUT, "metadata without its signature");
    cursor_skip(&c, 8);
    cursor_skip(&c, cursor_u32le(&c));
    cursor_skip(&c, 2);
    unsigned streams = cursor_u16le(&c);
    if (streams > STREAMS_MAX)
        return error_set(err, ERROR_LIMIT, "metadata with %u streams", streams);
    struct span tables = { 0 };
    for (unsigned i = 0; i < streams && cursor_ok(&c); i++) {
        uint32_t offset = cursor_u32le(&c);
        uint32_t size = cursor_u32le(&c);
        struct span name = cursor_zstring(&c);
        cursor_align(&c, 4);
        struct {
            const char *name;
            struct span *into;
        } known[] = { { "#~", &tables },      { "#-", &tables },      { "#Strings", &md.strings },
                      { "#Blob", &md.blobs }, { "#GUID", &md.guids }, { "#Pdb", &md.pdb } };
        for (size_t k = 0; k < ARRAY_LEN(known); k++)
            if (span_equals(name, span_of(known[k].name, strlen(known[k].name))))
                *known[k].into = span_part(bytes, offset, size);
    }
    if (!cursor_finish(&c, err, "metadata root"))
        return false;
    if (tables.size == 0)
        return error_set(err, ERROR_INPUT, "metadata without tables");
    uint32_t referenced_counts[ECMA_TABLES] = { 0 };
    need(&md, md.pdb.data, md.pdb.size);
    if (md.pdb.size)
        read_referenced_counts(md.pdb, referenced_counts);
    if (!read_tables(tables, referenced_counts, &md, err))
        return false;
    *out = md;
    return true;
}

bool ecma_metadata_open(struct span bytes, struct ecma_metadata *out, struct error *err)
{
    return open_metadata(bytes, NULL, out, err);
}

bool ecma_metadata_open_lazy(struct lazy_bytes *bytes, struct ecma_metadata *out, struct error *err)
{
    return open_metadata(lazy_bytes_span(bytes), bytes, out, err);
}

uint32_t ecma_cell(const struct ecma_metadata *md, enum ecma_table_id table, uint32_t row, unsigned column)
{
    const struct ecma_table *t = &md->tables[table];
    if (row == 0 || row > t->count || column >= t->columns)
        return 0;
    const uint8_t *at = t->rows + (size_t)(row - 1) * t->row_size + t->offsets[column];
    need(md, at, t->widths[column]);
    return t->widths[column] == 4 ? load_u32le(at) : load_u16le(at);
}

struct span ecma_string(const struct ecma_metadata *md, uint32_t offset)
{
    uint64_t left = offset < md->strings.size ? md->strings.size - offset : 0;
    struct span there = span_part(md->strings, offset, left < STRING_BYTES_MAX ? left : STRING_BYTES_MAX);
    need(md, there.data, there.size < NAME_BYTES ? there.size : NAME_BYTES);
    if (md->lazy && there.size > NAME_BYTES && !memchr(there.data, 0, NAME_BYTES))
        need(md, there.data, there.size);
    struct cursor c = cursor_over(there);
    return cursor_zstring(&c);
}

struct span ecma_cell_string(const struct ecma_metadata *md, enum ecma_table_id table, uint32_t row,
                             unsigned column)
{
    return ecma_string(md, ecma_cell(md, table, row, column));
}

uint32_t cursor_ecma_uint(struct cursor *c)
{
    uint32_t first = cursor_u8(c);
    if ((first & 0x80) == 0)
        return first;
    if ((first & 0x40) == 0)
        return (first & 0x3f) << 8 | cursor_u8(c);
    if (first & 0x20) {
        c->failed = true;
        return 0;
    }
    uint32_t value = (first & 0x1f) << 24;
    value |= (uint32_t)cursor_u8(c) << 16;
    value |= (uint32_t)cursor_u8(c) << 8;
    value |= cursor_u8(c);
    return cursor_ok(c) ? value : 0;
}

struct span ecma_blob(const struct ecma_metadata *md, uint32_t offset)
{
    struct cursor c = cursor_over(md->blobs);
    cursor_seek(&c, offset);
    if (cursor_ok(&c))
        need(md, c.bytes.data + c.pos, ECMA_UINT_BYTES_MAX);
    uint32_t size = cursor_ecma_uint(&c);
    struct span blob = cursor_bytes(&c, size);
    need(md, blob.data, blob.size);
    return blob;
}

struct span ecma_guid(const struct ecma_metadata *md, uint32_t index)
{
    struct span guid = index ? span_part(md->guids, 16ull * (index - 1), 16) : (struct span){ 0 };
    need(md, guid.data, guid.size);
    return guid;
}

struct span ecma_mvid(const struct ecma_metadata *md)
{
    return ecma_guid(md, ecma_cell(md, ECMA_MODULE, 1, ECMA_MODULE_MVID));
}

/* The first row whose key is at least `key`; count+1 when there is none. Needs a sorted table. */
static uint32_t lower_bound(const struct ecma_metadata *md, enum ecma_table_id table, unsigned column,
                            uint32_t key)
{
    uint32_t low = 1, high = ecma_rows(md, table) + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ecma_cell(md, table, middle, column) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first row with that key, and how many follow one another; tables being built are not sorted. */
static uint32_t rows_with_key(const struct ecma_metadata *md, enum ecma_table_id table, unsigned column,
                              uint32_t key, uint32_t *out_first)
{
    uint32_t rows = ecma_rows(md, table), row;
    if (md->sorted >> table & 1)
        row = lower_bound(md, table, column, key);
    else
        for (row = 1; row <= rows && row < UNSORTED_ROWS_MAX && ecma_cell(md, table, row, column) != key;
             row++)
            ;
    *out_first = row;
    uint32_t count = 0;
    while (count < ROWS_OF_KEY_MAX && row + count <= rows && ecma_cell(md, table, row + count, column) == key)
        count++;
    return count;
}

struct span ecma_type_simple_name(const struct ecma_metadata *md, uint32_t token)
{
    uint32_t row = token >> ECMA_TYPE_TAG_BITS;
    switch (token & ((1 << ECMA_TYPE_TAG_BITS) - 1)) {
    case ECMA_TYPE_IS_DEF:
        return ecma_cell_string(md, ECMA_TYPE_DEF, row, ECMA_TYPE_DEF_NAME);
    case ECMA_TYPE_IS_REF:
        return ecma_cell_string(md, ECMA_TYPE_REF, row, ECMA_TYPE_REF_NAME);
    default:
        return (struct span){ 0 };
    }
}

uint32_t ecma_method_owner(const struct ecma_metadata *md, uint32_t method)
{
    uint32_t pointers = ecma_rows(md, ECMA_METHOD_PTR);
    if (method == 0 || method > ecma_rows(md, ECMA_METHOD_DEF))
        return 0;
    if (pointers) {
        uint32_t at = 1;
        while (at <= pointers && at < UNSORTED_ROWS_MAX && ecma_cell(md, ECMA_METHOD_PTR, at, 0) != method)
            at++;
        if (ecma_cell(md, ECMA_METHOD_PTR, at, 0) != method)
            return 0;
        method = at;
    }
    /* Types without methods repeat the next type's start: the last one that starts here owns it. */
    return lower_bound(md, ECMA_TYPE_DEF, ECMA_TYPE_DEF_METHODS, method + 1) - 1;
}

/* The rows of `table` that are a type's own; empty when a table of pointers lies between. */
static void type_members(const struct ecma_metadata *md, uint32_t type, unsigned column,
                         enum ecma_table_id table, enum ecma_table_id pointers, uint32_t *first,
                         uint32_t *end)
{
    uint32_t limit = ecma_rows(md, table) + 1;
    *first = ecma_cell(md, ECMA_TYPE_DEF, type, column);
    *end = type < ecma_rows(md, ECMA_TYPE_DEF) ? ecma_cell(md, ECMA_TYPE_DEF, type + 1, column) : limit;
    if (*end > limit)
        *end = limit;
    if (*first == 0 || *first > *end || ecma_rows(md, pointers))
        *first = *end = limit;
}

void ecma_type_methods(const struct ecma_metadata *md, uint32_t type, uint32_t *first, uint32_t *end)
{
    type_members(md, type, ECMA_TYPE_DEF_METHODS, ECMA_METHOD_DEF, ECMA_METHOD_PTR, first, end);
}

bool ecma_is_method_of(const struct ecma_metadata *md, uint32_t method, uint32_t type)
{
    uint32_t first, end;
    if (ecma_rows(md, ECMA_METHOD_PTR))
        return type != 0 && ecma_method_owner(md, method) == type;
    ecma_type_methods(md, type, &first, &end);
    return method >= first && method < end;
}

void ecma_type_fields(const struct ecma_metadata *md, uint32_t type, uint32_t *first, uint32_t *end)
{
    type_members(md, type, ECMA_TYPE_DEF_FIELDS, ECMA_FIELD, ECMA_FIELD_PTR, first, end);
}

uint32_t ecma_enclosing_type(const struct ecma_metadata *md, uint32_t type)
{
    uint32_t row;
    return rows_with_key(md, ECMA_NESTED_CLASS, 0, type, &row) ? ecma_cell(md, ECMA_NESTED_CLASS, row, 1) : 0;
}

uint32_t ecma_generic_params(const struct ecma_metadata *md, unsigned owner_tag, uint32_t row,
                             uint32_t *out_first)
{
    return rows_with_key(md, ECMA_GENERIC_PARAM, ECMA_GENERIC_PARAM_OWNER, row << 1 | owner_tag, out_first);
}

uint32_t ecma_interfaces(const struct ecma_metadata *md, uint32_t type, uint32_t *out_first)
{
    return rows_with_key(md, ECMA_INTERFACE_IMPL, ECMA_INTERFACE_IMPL_CLASS, type, out_first);
}

uint32_t ecma_method_debug_infos(const struct ecma_metadata *md, uint32_t method, uint32_t *out_first)
{
    return rows_with_key(md, ECMA_CUSTOM_DEBUG_INFORMATION, ECMA_DEBUG_INFORMATION_PARENT,
                         method << ECMA_DEBUG_INFORMATION_TAG_BITS, out_first);
}
