#include "clr/loaded_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/ecma_signature.h"

enum {
    NAME_BYTES_MAX = 64 << 10, /* with those of its arguments on the way */
    NESTING_MAX = 24,
    MODULES_MAX = 1 << 14,
    DOUBTED_MAX = 256, /* that nobody asked for between two renewals */
    TYPES_MAX = 1 << 20,
    NAMES_BYTES_MAX = 256 << 20,
    METADATA_BYTES_MAX = 512 << 20, /* no further module is read from there on */
    DESC_MASK = 2,                  /* of a handle: a TypeDesc, not a MethodTable */
    DESC_ARGUMENT = 0x10,
    SINGLE_DIMENSION = 0x20000,
    ARRAY_BASE_BYTES = 24, /* of an array without bounds: what is before it, its MethodTable, its length */
    BOUNDS_BYTES = 8,      /* a length and a lower bound */
    RANK_MAX = 32,
};

void loaded_types_init(struct loaded_types *types, struct memory_pages *pages,
                       const struct runtime_layout *layout, const struct module_files *files)
{
    *types = (struct loaded_types){ .pages = pages, .layout = layout, .files = files };
    arena_init(&types->names, NAMES_BYTES_MAX);
    buffer_init(&types->spelling, NAME_BYTES_MAX);
}

static void forget_types(struct loaded_types *types)
{
    arena_done(&types->names);
    types->type_count = 0;
    id_map_clear(&types->type_ids);
}

void loaded_types_done(struct loaded_types *types)
{
    forget_types(types);
    for (size_t i = 0; i < types->module_count; i++)
        loaded_module_done(&types->modules[i]);
    free(types->modules);
    free(types->doubted);
    free(types->types);
    buffer_done(&types->spelling);
    id_map_done(&types->module_ids);
    id_map_done(&types->type_ids);
    *types = (struct loaded_types){ 0 };
}

static uint64_t hash_addr(uint64_t addr)
{
    return hash_pair(addr, 0);
}

/* Of a program that loads and unloads all the time most do not come back. */
static bool has_too_many_doubted(const struct loaded_types *types)
{
    size_t count = 0;
    for (size_t i = 0; i < types->module_count; i++)
        count += types->doubted[i];
    return count > DOUBTED_MAX;
}

void loaded_types_renew(struct loaded_types *types)
{
    size_t kept = 0;
    bool too_many = has_too_many_doubted(types);
    forget_types(types);
    id_map_clear(&types->module_ids);
    for (size_t i = 0; i < types->module_count; i++) {
        struct loaded_module m = types->modules[i];
        if (!loaded_module_can_be_same(&m) || (too_many && types->doubted[i])) {
            types->metadata_bytes -= loaded_module_bytes(&m).size;
            loaded_module_done(&m);
            continue;
        }
        types->modules[kept] = m;
        types->doubted[kept++] = true;
        id_map_add(&types->module_ids, hash_addr(m.addr), (uint32_t)kept);
    }
    types->module_count = kept;
}

static bool is_module(const void *table, uint32_t id, const void *key)
{
    return ((const struct loaded_module *)table)[id - 1].addr == *(const uint64_t *)key;
}

static bool is_type(const void *table, uint32_t id, const void *key)
{
    return ((const struct loaded_type *)table)[id - 1].addr == *(const uint64_t *)key;
}

static void read_module(struct loaded_types *types, uint64_t addr, struct loaded_module *out)
{
    loaded_module_read(types->pages, types->layout, types->files, addr, out);
    types->metadata_bytes += loaded_module_bytes(out).size;
}

/* One that was unloaded since makes place for what lies there now. */
static void settle_doubt(struct loaded_types *types, uint32_t id)
{
    struct loaded_module *m = &types->modules[id - 1];
    types->doubted[id - 1] = false;
    if (loaded_module_is_same(types->pages, types->layout, m))
        return;
    uint64_t addr = m->addr;
    types->metadata_bytes -= loaded_module_bytes(m).size;
    loaded_module_done(m);
    read_module(types, addr, m);
}

/* Index + 1. */
static uint32_t add_module(struct loaded_types *types, uint64_t addr)
{
    size_t count = types->module_count + 1;
    types->modules = mem_grow(types->modules, &types->module_capacity, count, sizeof *types->modules);
    types->doubted = mem_grow(types->doubted, &types->doubted_capacity, count, sizeof *types->doubted);
    types->doubted[count - 1] = false;
    read_module(types, addr, &types->modules[count - 1]);
    types->module_count = count;
    id_map_add(&types->module_ids, hash_addr(addr), (uint32_t)count);
    return (uint32_t)count;
}

/* Index + 1, or 0. */
static uint32_t find_module(struct loaded_types *types, uint64_t addr)
{
    if (addr == 0 || addr % 8 != 0)
        return 0;
    uint32_t id = id_map_find(&types->module_ids, hash_addr(addr), is_module, types->modules, &addr);
    if (id && types->doubted[id - 1])
        settle_doubt(types, id);
    if (id || types->module_count == MODULES_MAX || types->metadata_bytes >= METADATA_BYTES_MAX)
        return id;
    return add_module(types, addr);
}

static bool spell_handle(struct loaded_types *types, uint64_t handle, unsigned depth, struct buffer *out);

static bool spell_desc(struct loaded_types *types, uint64_t desc, unsigned depth, struct buffer *out)
{
    uint8_t element = (uint8_t)memory_pages_u32(types->pages, desc);
    if ((element != ELEMENT_PTR && element != ELEMENT_BYREF) ||
        !spell_handle(types, memory_pages_u64(types->pages, desc + DESC_ARGUMENT), depth, out))
        return false;
    buffer_u8(out, element == ELEMENT_PTR ? '*' : '&');
    return true;
}

static bool spell_list(struct loaded_types *types, uint64_t list, unsigned count, unsigned depth,
                       struct buffer *out)
{
    for (unsigned i = 0; i < count; i++) {
        buffer_u8(out, i ? ',' : '[');
        if (!spell_handle(types, memory_pages_u64(types->pages, list + 8 * (uint64_t)i), depth, out))
            return false;
    }
    if (count)
        buffer_u8(out, ']');
    return true;
}

static bool spell_arguments(struct loaded_types *types, const struct method_table *table, unsigned depth,
                            struct buffer *out)
{
    uint64_t list = 0;
    unsigned count = method_table_arguments(types->pages, table, &list);
    return spell_list(types, list, count, depth, out);
}

/* `module`: index + 1. */
static bool spell_definition(const struct loaded_types *types, const struct method_table *table,
                             uint32_t module, struct buffer *out)
{
    const struct ecma_metadata *md = module ? &types->modules[module - 1].md : NULL;
    if (!md || table->row == 0 || table->row > ecma_rows(md, ECMA_TYPE_DEF))
        return false;
    ecma_spell_type_token(md, table->row << ECMA_TYPE_TAG_BITS | ECMA_TYPE_IS_DEF, out);
    return true;
}

/* "[]"; of an array of several dimensions "[,]", which are told by the room that its bounds take. */
static bool spell_dimensions(const struct loaded_types *types, const struct method_table *table,
                             struct buffer *out)
{
    if (table->flags & SINGLE_DIMENSION) {
        buffer_string(out, "[]");
        return true;
    }
    uint32_t bytes = memory_pages_u32(types->pages, table->addr + types->layout->table.base_size);
    uint32_t rank = bytes > ARRAY_BASE_BYTES ? (bytes - ARRAY_BASE_BYTES) / BOUNDS_BYTES : 0;
    if (rank == 0 || rank > RANK_MAX)
        return false;
    buffer_u8(out, '[');
    if (rank == 1) /* which need not begin at 0 */
        buffer_u8(out, '*');
    while (--rank > 0)
        buffer_u8(out, ',');
    buffer_u8(out, ']');
    return true;
}

/* `module`: index + 1. */
static bool spell_table(struct loaded_types *types, const struct method_table *table, uint32_t module,
                        unsigned depth, struct buffer *out)
{
    if (method_table_is_array(table))
        return spell_handle(types, table->instance, depth, out) && spell_dimensions(types, table, out);
    return spell_definition(types, table, module, out) && spell_arguments(types, table, depth, out);
}

/* Index + 1 of the type, or 0. */
static uint32_t find_type(struct loaded_types *types, uint64_t addr)
{
    uint32_t id = id_map_find(&types->type_ids, hash_addr(addr), is_type, types->types, &addr);
    if (id)
        return id;
    struct loaded_type type = { .addr = addr };
    if (types->type_count == TYPES_MAX || !method_table_read(types->pages, types->layout, addr, &type.table))
        return 0;
    type.module = find_module(types, type.table.module);
    types->types = mem_grow(types->types, &types->type_capacity, types->type_count + 1, sizeof *types->types);
    types->types[types->type_count++] = type;
    id = (uint32_t)types->type_count;
    id_map_add(&types->type_ids, hash_addr(addr), id);
    return id;
}

/* Recursive: arguments of a type are types. What is made of itself finds itself asked for, without a name. */
static void spell_type(struct loaded_types *types, uint32_t id, unsigned depth)
{
    if (types->types[id - 1].asked)
        return;
    types->types[id - 1].asked = true;
    struct loaded_type type = types->types[id - 1];
    struct buffer *text = &types->spelling;
    if (depth == 0)
        buffer_clear(text);
    size_t start = text->size;
    if (spell_table(types, &type.table, type.module, depth, text) && !text->failed && text->size > start) {
        type.name_size = text->size - start;
        type.name = arena_string(&types->names, span_of(text->data + start, type.name_size));
        types->types[id - 1] = type;
    }
    text->size = start;
}

static bool spell_handle(struct loaded_types *types, uint64_t handle, unsigned depth, struct buffer *out)
{
    if (depth >= NESTING_MAX || out->failed)
        return false;
    if (handle & DESC_MASK)
        return spell_desc(types, handle & ~(uint64_t)DESC_MASK, depth + 1, out);
    uint32_t id = find_type(types, handle);
    if (id)
        spell_type(types, id, depth + 1);
    if (!id || !types->types[id - 1].name)
        return false;
    buffer_append(out, types->types[id - 1].name, types->types[id - 1].name_size);
    return true;
}

const struct loaded_type *loaded_types_find(struct loaded_types *types, uint64_t table)
{
    uint32_t id = find_type(types, table);
    if (id)
        spell_type(types, id, 0);
    return id ? &types->types[id - 1] : NULL;
}

const struct loaded_type *loaded_types_find_nameless(struct loaded_types *types, uint64_t table)
{
    uint32_t id = find_type(types, table);
    return id ? &types->types[id - 1] : NULL;
}

bool loaded_types_spell_definition(const struct loaded_types *types, const struct loaded_type *type,
                                   struct buffer *out)
{
    return !method_table_is_array(&type->table) && spell_definition(types, &type->table, type->module, out);
}

bool loaded_types_spell_list(struct loaded_types *types, uint64_t list, unsigned count, struct buffer *out)
{
    return spell_list(types, list, count, 0, out) && !out->failed;
}

bool loaded_types_has_module(const struct loaded_types *types, uint64_t module)
{
    return id_map_find(&types->module_ids, hash_addr(module), is_module, types->modules, &module);
}

const struct loaded_module *loaded_types_module(const struct loaded_types *types,
                                                const struct loaded_type *type)
{
    static const struct loaded_module none = { .path = (char *)"", .name = (char *)"" };
    return type->module ? &types->modules[type->module - 1] : &none;
}
