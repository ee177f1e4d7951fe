#include "symbolize/assembly_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/mem.h"

enum {
    METADATA_BYTES_MAX = 256 << 20,
    NAME_BYTES_MAX = 512,
    NESTING_MAX = 16,
    FORWARDS_MAX = 8,
    ASSEMBLIES_MAX = 4096,
    SET_BYTES_MAX = 1 << 30, /* no further assembly is read from there on */
};

struct type_index {
    struct id_map ids; /* TypeDef rows by outer type, namespace and name */
};

struct assembly_set {
    struct sibling_finder finder;
    struct member {
        char *name;                /* as asked for */
        struct assembly *assembly; /* NULL: asked for, not found */
    } * members;
    size_t count, capacity;
    uint64_t bytes; /* of metadata */
};

static char *copy_name(struct span name)
{
    char *copy = mem_alloc(name.size + 1, 1);
    if (name.size)
        memcpy(copy, name.data, name.size);
    return copy;
}

static char *assembly_name_of(const struct ecma_metadata *md)
{
    struct span name = ecma_cell_string(md, ECMA_ASSEMBLY, 1, ECMA_ASSEMBLY_NAME);
    if (name.size == 0)
        name = ecma_cell_string(md, ECMA_MODULE, 1, ECMA_MODULE_NAME);
    if (name.size > NAME_BYTES_MAX)
        name.size = NAME_BYTES_MAX;
    return copy_name(name);
}

bool assembly_load(const struct source *file, const struct pe *pe, struct pe_range range,
                   struct assembly *out, struct error *err)
{
    struct assembly loaded = { 0 };
    loaded.bytes = pe_load_lazily(file, pe, range, METADATA_BYTES_MAX, err);
    if (!loaded.bytes || !ecma_metadata_open_lazy(loaded.bytes, &loaded.md, err)) {
        lazy_bytes_close(loaded.bytes);
        return false;
    }
    loaded.name = assembly_name_of(&loaded.md);
    struct span mvid = ecma_mvid(&loaded.md);
    if (mvid.size == sizeof loaded.mvid)
        memcpy(loaded.mvid, mvid.data, sizeof loaded.mvid);
    *out = loaded;
    return true;
}

void assembly_done(struct assembly *assembly)
{
    free(assembly->name);
    lazy_bytes_close(assembly->bytes);
    if (assembly->types)
        id_map_done(&assembly->types->ids);
    free(assembly->types);
    *assembly = (struct assembly){ 0 };
}

struct type_key {
    uint32_t outer;
    struct span name_space, name;
};

static struct type_key key_of(const struct ecma_metadata *md, uint32_t type)
{
    return (struct type_key){ ecma_enclosing_type(md, type),
                              ecma_cell_string(md, ECMA_TYPE_DEF, type, ECMA_TYPE_DEF_NAMESPACE),
                              ecma_cell_string(md, ECMA_TYPE_DEF, type, ECMA_TYPE_DEF_NAME) };
}

static uint64_t hash_key(const struct type_key *key)
{
    return hash_pair(hash_bytes(key->name.data, key->name.size),
                     hash_pair(hash_bytes(key->name_space.data, key->name_space.size), key->outer));
}

static bool is_type(const void *table, uint32_t id, const void *wanted)
{
    const struct type_key *key = wanted;
    struct type_key there = key_of(table, id);
    return there.outer == key->outer && span_equals(there.name, key->name) &&
           span_equals(there.name_space, key->name_space);
}

static uint32_t find_type(struct assembly *assembly, struct type_key key)
{
    const struct ecma_metadata *md = &assembly->md;
    if (!assembly->types) {
        assembly->types = mem_alloc(1, sizeof *assembly->types);
        for (uint32_t type = 1; type <= ecma_rows(md, ECMA_TYPE_DEF); type++) {
            struct type_key row = key_of(md, type);
            id_map_add(&assembly->types->ids, hash_key(&row), type);
        }
    }
    return id_map_find(&assembly->types->ids, hash_key(&key), is_type, md, &key);
}

uint32_t assembly_find_type(struct assembly *assembly, struct span name_space, struct span name)
{
    return find_type(assembly, (struct type_key){ 0, name_space, name });
}

struct assembly_set *assembly_set_new(const struct sibling_finder *finder)
{
    struct assembly_set *set = mem_alloc(1, sizeof *set);
    set->finder = *finder;
    return set;
}

void assembly_set_free(struct assembly_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->members[i].name);
        if (set->members[i].assembly)
            assembly_done(set->members[i].assembly);
        free(set->members[i].assembly);
    }
    free(set->members);
    free(set);
}

static struct assembly *load_from(const struct source *file)
{
    struct pe pe;
    struct pe_cli cli;
    struct assembly loaded;
    if (!pe_read(file, &pe, NULL) || !pe_read_cli(file, &pe, &cli, NULL) ||
        !assembly_load(file, &pe, cli.metadata, &loaded, NULL))
        return NULL;
    struct assembly *kept = mem_alloc(1, sizeof *kept);
    *kept = loaded;
    return kept;
}

struct assembly *assembly_set_find(struct assembly_set *set, struct span simple_name)
{
    if (!set || simple_name.size == 0 || simple_name.size > NAME_BYTES_MAX ||
        memchr(simple_name.data, '/', simple_name.size))
        return NULL;
    for (size_t i = 0; i < set->count; i++)
        if (span_equals(span_of(set->members[i].name, strlen(set->members[i].name)), simple_name))
            return set->members[i].assembly;
    if (set->count == ASSEMBLIES_MAX || set->bytes >= SET_BYTES_MAX)
        return NULL;
    set->members = mem_grow(set->members, &set->capacity, set->count + 1, sizeof *set->members);
    struct member *member = &set->members[set->count++];
    *member = (struct member){ .name = copy_name(simple_name) };
    struct source file;
    if (set->finder.open(set->finder.user, member->name, &file)) {
        member->assembly = load_from(&file);
        set->bytes += member->assembly ? member->assembly->bytes->size : 0;
        if (set->finder.close)
            set->finder.close(set->finder.user, &file);
    }
    return member->assembly;
}

static uint32_t scope_tag(uint32_t scope)
{
    return scope & ((1 << ECMA_SCOPE_TAG_BITS) - 1);
}

/* The row of an ExportedType of that name whose implementation is another assembly, or an empty name. */
static struct span forwarded_to(const struct ecma_metadata *md, struct span name_space, struct span name)
{
    for (uint32_t row = 1; row <= ecma_rows(md, ECMA_EXPORTED_TYPE); row++) {
        uint32_t implementation = ecma_cell(md, ECMA_EXPORTED_TYPE, row, ECMA_EXPORTED_TYPE_IMPLEMENTATION);
        if ((implementation & ((1 << ECMA_IMPLEMENTATION_TAG_BITS) - 1)) ==
                ECMA_IMPLEMENTATION_IS_ASSEMBLY_REF &&
            span_equals(ecma_cell_string(md, ECMA_EXPORTED_TYPE, row, ECMA_EXPORTED_TYPE_NAME), name) &&
            span_equals(ecma_cell_string(md, ECMA_EXPORTED_TYPE, row, ECMA_EXPORTED_TYPE_NAMESPACE),
                        name_space))
            return ecma_cell_string(md, ECMA_ASSEMBLY_REF, implementation >> ECMA_IMPLEMENTATION_TAG_BITS,
                                    ECMA_ASSEMBLY_REF_NAME);
    }
    return (struct span){ 0 };
}

bool assembly_set_resolve(struct assembly_set *set, const struct ecma_metadata *md, uint32_t type_ref,
                          struct assembly **out_assembly, uint32_t *out_type, struct span *out_name)
{
    uint32_t path[NESTING_MAX], depth = 0, row = type_ref, scope;
    for (;;) {
        if (depth == NESTING_MAX)
            return false;
        path[depth++] = row;
        scope = ecma_cell(md, ECMA_TYPE_REF, row, ECMA_TYPE_REF_SCOPE);
        if (scope_tag(scope) != ECMA_SCOPE_IS_TYPE_REF)
            break;
        row = scope >> ECMA_SCOPE_TAG_BITS;
    }
    if (scope_tag(scope) != ECMA_SCOPE_IS_ASSEMBLY_REF)
        return false;
    *out_name = ecma_cell_string(md, ECMA_ASSEMBLY_REF, scope >> ECMA_SCOPE_TAG_BITS, ECMA_ASSEMBLY_REF_NAME);
    struct span name_space = ecma_cell_string(md, ECMA_TYPE_REF, row, ECMA_TYPE_REF_NAMESPACE);
    struct span name = ecma_cell_string(md, ECMA_TYPE_REF, row, ECMA_TYPE_REF_NAME);
    for (unsigned forwards = 0; forwards < FORWARDS_MAX; forwards++) {
        struct assembly *assembly = assembly_set_find(set, *out_name);
        if (!assembly)
            return false;
        uint32_t type = assembly_find_type(assembly, name_space, name);
        for (uint32_t inner = depth - 1; type && inner; inner--)
            type = find_type(assembly,
                             (struct type_key){ .outer = type,
                                                .name = ecma_cell_string(md, ECMA_TYPE_REF, path[inner - 1],
                                                                         ECMA_TYPE_REF_NAME) });
        if (type) {
            *out_assembly = assembly;
            *out_type = type;
            return true;
        }
        struct span next = forwarded_to(&assembly->md, name_space, name);
        if (next.size == 0)
            return false;
        *out_name = next;
    }
    return false;
}
