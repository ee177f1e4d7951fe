/*
 * aot_callable: the methods of a Native AOT program that reflection can call, by the program's own tables.
 *
 * A row has the method's record in the metadata, its type and its code, as numbers of a list of places;
 * another table says which of these places are types, and of which definition (dotnet/runtime
 * src/coreclr/tools/aot/ ILCompiler.Compiler: ReflectionInvokeMapNode.cs, TypeMetadataMapNode.cs,
 * ExternalReferencesTableNode.cs).
 */
#ifndef CLRPERF_READ_AOT_CALLABLE_H
#define CLRPERF_READ_AOT_CALLABLE_H

#include "read/aot_metadata.h"

struct aot_method {
    uint64_t addr;  /* as linked */
    uint32_t owner; /* token of its type; 0: not known */
    uint32_t name;  /* of aot_metadata_text() */
};

/* Borrowed. */
struct aot_tables {
    struct span callable, types; /* hash tables */
    struct span places;          /* each as the distance from where it is written */
    uint64_t places_addr;
};

/* Return false to stop. */
typedef bool aot_method_fn(void *user, const struct aot_method *method);
/* What is damaged is left out, and so are methods whose type is not told. */
void aot_callable_each(const struct aot_metadata *md, const struct aot_tables *tables, aot_method_fn *each,
                       void *user);

#endif
