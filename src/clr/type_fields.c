#include "clr/type_fields.h"

#include <string.h>

enum {
    RECORD_BYTES = 16,
    RECORD_TABLE = 0,
    RECORD_ROW = 8, /* 24 bits, then flags */
    RECORD_PLACE = 12,
    ROW_MASK = (1 << 24) - 1,
    IS_STATIC = 1 << 24,
    OFFSET_MASK = (1 << 27) - 1,
    OFFSET_BITS = 27,
    FIELDS_MAX = 1 << 12,
    IS_LITERAL = 0x40, /* a constant: no record. ECMA-335 II.23.1.5 */
};

static uint32_t count_records(const struct ecma_metadata *md, uint32_t first, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t row = first; row < end && count < FIELDS_MAX; row++)
        count += !(ecma_cell(md, ECMA_FIELD, row, ECMA_FIELD_FLAGS) & IS_LITERAL);
    return count;
}

void type_fields_list(struct loaded_types *types, uint64_t table, type_fields_fn *emit, void *user)
{
    struct memory_pages *pages = types->pages;
    const struct runtime_layout *layout = types->layout;
    const struct loaded_type *type = loaded_types_find_nameless(types, table);
    if (!type || method_table_is_array(&type->table))
        return;
    const struct ecma_metadata *md = &loaded_types_module(types, type)->md;
    uint64_t canonical = type->table.canonical;
    uint64_t eeclass = memory_pages_u64(pages, canonical + layout->table.class_or_canonical);
    uint64_t record = memory_pages_u64(pages, eeclass + layout->class_fields);
    uint32_t first, end;
    ecma_type_fields(md, type->table.row, &first, &end);
    /* another thing follows the last record */
    for (uint32_t left = record ? count_records(md, first, end) : 0; left; left--, record += RECORD_BYTES) {
        uint32_t row = memory_pages_u32(pages, record + RECORD_ROW);
        uint32_t place = memory_pages_u32(pages, record + RECORD_PLACE);
        if (memory_pages_u64(pages, record + RECORD_TABLE) != canonical)
            return;
        if ((row & IS_STATIC) || (row & ROW_MASK) < first || (row & ROW_MASK) >= end)
            continue;
        struct type_field field = { place & OFFSET_MASK, (uint8_t)(place >> OFFSET_BITS) };
        if (!emit(user, ecma_cell_string(md, ECMA_FIELD, row & ROW_MASK, ECMA_FIELD_NAME), &field))
            return;
    }
}

struct search {
    struct span name;
    struct type_field *out;
    bool found;
};

static bool is_it(void *user, struct span name, const struct type_field *field)
{
    struct search *search = user;
    if (!span_equals(name, search->name))
        return true;
    *search->out = *field;
    search->found = true;
    return false;
}

bool type_fields_find(struct loaded_types *types, uint64_t table, const char *name, struct type_field *out)
{
    struct search search = { span_of(name, strlen(name)), out, false };
    type_fields_list(types, table, is_it, &search);
    return search.found;
}

uint32_t type_fields_in_object(struct loaded_types *types, uint64_t table, const char *name)
{
    struct type_field field;
    return type_fields_find(types, table, name, &field) ? OBJECT_FIELDS + field.offset : TYPE_FIELD_NONE;
}

uint64_t type_fields_base(struct loaded_types *types, uint64_t table)
{
    const struct loaded_type *type = loaded_types_find_nameless(types, table);
    return type ? memory_pages_u64(types->pages, table + types->layout->table.parent) : 0;
}
