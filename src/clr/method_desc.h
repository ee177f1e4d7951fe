/*
 * method_desc: what the runtime's own record of a method says: whose method it is and which row of metadata.
 *
 * A MethodDesc lies in a chunk of up to 256, whose head points to the type's MethodTable. Everything here was
 * checked against one another: alignment, the place in the chunk, and that the type's EEClass points back at
 * it.
 */
#ifndef CLRPERF_CLR_METHOD_DESC_H
#define CLRPERF_CLR_METHOD_DESC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_pages.h"
#include "clr/runtime_layout.h"

enum method_class {
    METHOD_IL,
    METHOD_FCALL,
    METHOD_PINVOKE,
    METHOD_EEIMPL, /* of delegates */
    METHOD_ARRAY,
    METHOD_GENERIC, /* with type arguments of its own */
    METHOD_COM,
    METHOD_DYNAMIC, /* without metadata: DynamicMethod, IL stubs */
};

struct method_desc {
    uint64_t addr;
    uint64_t table; /* address of its type's MethodTable */
    uint32_t row;   /* of MethodDef; of no meaning when dynamic */
    uint8_t kind;   /* enum method_class */
    bool tiered;    /* may be compiled again, better; false where layout->tiered_bit is 0 */
    bool has_async; /* its bits are behind it: method_desc_is_async_thunk() */
};

/* False when `addr` is no MethodDesc (any more). */
bool method_desc_read(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr,
                      struct method_desc *out);
/* Whether its code only calls the form of an asynchronous method that is awaited: METHOD_ASYNC_THUNK in
 * clr/method_name. */
bool method_desc_is_async_thunk(struct memory_pages *pages, const struct runtime_layout *layout,
                                const struct method_desc *method);
/* Where the chunk's head is, so that its page can be asked for ahead. */
uint64_t method_desc_chunk(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr);

/* What a MethodTable says of its type. */
struct method_table {
    uint64_t addr;
    uint64_t canonical; /* MethodTable that shares its code, often itself */
    uint64_t module;    /* Module that defines the type */
    uint64_t instance;  /* where its type arguments are, or its element type */
    uint32_t flags;
    uint32_t row; /* of TypeDef */
};

/* False when `addr` is no MethodTable. */
bool method_table_read(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr,
                       struct method_table *out);
static inline bool method_table_is_array(const struct method_table *table)
{
    return (table->flags & 0xc0000) == 0x80000;
}
/* The list of type arguments (8 bytes each) and their number; 0 for a type that has none. */
unsigned method_table_arguments(struct memory_pages *pages, const struct method_table *table,
                                uint64_t *out_list);
/* The list of a generic method's type arguments (8 bytes each; 0: unknown) and their number, or 0. */
unsigned method_desc_arguments(struct memory_pages *pages, const struct runtime_layout *layout,
                               const struct method_desc *method, uint64_t *out_list);

/* What a method without metadata is for. */
enum dynamic_kind {
    DYNAMIC_OTHER,
    DYNAMIC_METHOD, /* made by the program: DynamicMethod, compiled expressions */
    DYNAMIC_IL_STUB,
};
struct dynamic_method {
    uint8_t kind;       /* enum dynamic_kind */
    uint64_t name;      /* UTF-8, NUL-ended */
    uint64_t signature; /* as ECMA-335 II.23.2.1, types by their handles */
    uint32_t signature_size;
    uint64_t target; /* of a stub: perhaps the MethodDesc that it serves; 0 for none */
};
/* Its kind, name and signature; and with the next the target too, which lies farther off. */
void dynamic_method_name(struct memory_pages *pages, const struct runtime_layout *layout,
                         const struct method_desc *method, struct dynamic_method *out);
void dynamic_method_read(struct memory_pages *pages, const struct runtime_layout *layout,
                         const struct method_desc *method, struct dynamic_method *out);

enum { METHOD_VERSIONS_MAX = 256 };
/* A note on a version of a method's code. */
struct method_version {
    uint64_t code; /* where it begins */
    uint64_t next; /* where the next note is, or 0 */
    uint32_t tier;
};
void method_version_read(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t addr,
                         struct method_version *out);
enum { METHOD_TIER_OPTIMIZED = 3 }; /* at once, and for good */
/*
 * The optimisation tier that the runtime notes for code of a method: 0, 1, 2 (tier 1, made while it ran), 4
 * (instrumented). False when it notes none: the first version of the code, or a runtime before 9.
 */
bool method_desc_tier(struct memory_pages *pages, const struct runtime_layout *layout,
                      const struct method_desc *method, uint64_t code, uint32_t *out_tier);

#endif
