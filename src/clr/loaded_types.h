/*
 * loaded_types: the types of a running program, by the address of their MethodTable, and the modules that
 * define them.
 *
 * Names are spelled as the runtime spells them in its events:
 * "Ns.Outer`1+Inner[System.Int32,System.__Canon]".
 */
#ifndef CLRPERF_CLR_LOADED_TYPES_H
#define CLRPERF_CLR_LOADED_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/id_map.h"
#include "clr/loaded_module.h"
#include "clr/method_desc.h"

struct loaded_type {
    uint64_t addr;
    struct method_table table;
    uint32_t module;  /* index; of loaded_types.modules */
    bool asked;       /* for its name */
    const char *name; /* in loaded_types.names; NULL: it could not be spelled, or nobody asked */
    size_t name_size;
};

struct loaded_types {
    struct memory_pages *pages; /* borrowed, as the next two */
    const struct runtime_layout *layout;
    const struct module_files *files;
    struct loaded_module *modules;
    size_t module_count, module_capacity;
    struct loaded_type *types;
    size_t type_count, type_capacity;
    struct arena names;     /* of the types */
    struct buffer spelling; /* names on the way: a type's, behind it one of its arguments' */
    bool *doubted;          /* of a module: it was read before the last renewal */
    size_t doubted_capacity;
    uint64_t metadata_bytes;            /* of all modules */
    struct id_map module_ids, type_ids; /* index + 1 by address */
};

void loaded_types_init(struct loaded_types *types, struct memory_pages *pages,
                       const struct runtime_layout *layout, const struct module_files *files);
void loaded_types_done(struct loaded_types *types);
/* Forgets what may have been unloaded since: all types, and at the next question for it a module that is not
 * the same any more. */
void loaded_types_renew(struct loaded_types *types);

/* The type at a MethodTable, or NULL when there is none. Valid until the next call of any of these. */
const struct loaded_type *loaded_types_find(struct loaded_types *types, uint64_t table);
/* The same, its name not spelled for it: that can take the metadata of further modules. */
const struct loaded_type *loaded_types_find_nameless(struct loaded_types *types, uint64_t table);
/* Appends "[A,B]" of `count` types whose handles are in the target at `list`. False: perhaps a part of it. */
bool loaded_types_spell_list(struct loaded_types *types, uint64_t list, unsigned count, struct buffer *out);
/* Appends its name without what it is of, "Ns.Outer`1+Inner". False when it has no name of its own. */
bool loaded_types_spell_definition(const struct loaded_types *types, const struct loaded_type *type,
                                   struct buffer *out);
/* Whether the module that a MethodTable belongs to is one that was read already. */
bool loaded_types_has_module(const struct loaded_types *types, uint64_t module);
/* The module that defines it. */
const struct loaded_module *loaded_types_module(const struct loaded_types *types,
                                                const struct loaded_type *type);

#endif
