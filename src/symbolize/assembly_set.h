/*
 * assembly_set: the metadata of assemblies that can be found by name, each loaded once.
 *
 * A precompiled image names types and methods of other assemblies; their spelling needs those
 * assemblies' own files. One set serves all images of one process (or one framework folder).
 */
#ifndef CLRPERF_SYMBOLIZE_ASSEMBLY_SET_H
#define CLRPERF_SYMBOLIZE_ASSEMBLY_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/source.h"
#include "read/ecma_metadata.h"
#include "read/pe.h"

/* How the files are found; answered by whoever knows the process. */
struct sibling_finder {
    /* Opens the assembly of a simple name ("System.Linq"). False when there is none. */
    bool (*open)(void *user, const char *simple_name, struct source *out);
    /* Gives back what open() gave; called as soon as the metadata is read. May be NULL. */
    void (*close)(void *user, struct source *file);
    void *user;
};

/* One assembly's metadata, without its code. */
struct assembly {
    char *name; /* simple name, from the Assembly table (else from the Module table), owned */
    uint8_t mvid[16];
    struct lazy_bytes *bytes;
    struct ecma_metadata md;  /* borrows `bytes` */
    struct type_index *types; /* made at the first search by name */
};

/* Reads the metadata at `range` of a PE file. Undo with assembly_done(). */
bool assembly_load(const struct source *file, const struct pe *pe, struct pe_range range,
                   struct assembly *out, struct error *err);
void assembly_done(struct assembly *assembly);
/* The TypeDef row of a type that is not nested, or 0. */
uint32_t assembly_find_type(struct assembly *assembly, struct span name_space, struct span name);

struct assembly_set;

/* `finder` is copied. */
struct assembly_set *assembly_set_new(const struct sibling_finder *finder);
void assembly_set_free(struct assembly_set *set);
/* The assembly of that simple name, or NULL when there is none (or it cannot be read). Owned by the set. */
struct assembly *assembly_set_find(struct assembly_set *set, struct span simple_name);

/*
 * Follows a TypeRef row of `md` to the assembly that defines the type, through type forwarders.
 * False when the set lacks an assembly on the way; *out_name then is the last assembly name known.
 */
bool assembly_set_resolve(struct assembly_set *set, const struct ecma_metadata *md, uint32_t type_ref,
                          struct assembly **out_assembly, uint32_t *out_type, struct span *out_name);

#endif
