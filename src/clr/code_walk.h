/*
 * code_walk: names the jitted code of a .NET process from its memory, without the process's help.
 *
 * Reads what the runtime keeps to find its own way from an address to a method: regions of code, nibble maps,
 * code headers, MethodDescs, types, metadata. Works on a process that hangs, is stopped, or has its
 * diagnostics switched off, and on a dump. Which layout the structures have is checked on every opening
 * against the assemblies' metadata; one that does not fit is refused, so that there is no name rather than a
 * wrong one. Belongs to one thread.
 *
 *     open -> list or find, ... -> renew, when the process went on -> list or find, ... -> close
 */
#ifndef CLRPERF_CLR_CODE_WALK_H
#define CLRPERF_CLR_CODE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "clr/fitted_layout.h"
#include "read/il_map.h"

enum found_kind {
    FOUND_METHOD,  /* jitted, with metadata */
    FOUND_DYNAMIC, /* jitted, without: DynamicMethod, IL stubs; its address and record are soon used again */
    FOUND_STUB,    /* machine code that belongs to no method */
};

/*
 * What the runtime's own events say of code that is there (MethodDCEndVerbose), as far as memory tells it.
 *
 * Code of a method that may be compiled again has a note of its tier on 9 and 10, but for its first version:
 * that is optimized where its calls are not counted (call_counting.h; where its table is on other runtimes is
 * not known), else tier 0. On 8 there is no note, and its tier is unknown. Code that is compiled once, as of
 * dynamic methods, with AggressiveOptimization, with tiering off, in debug builds, is optimized on 8, 9 and
 * 10, or tier 0 for good where jit_opt_out.h says so. Nothing is known on 3.1.
 */
enum found_tier {
    FOUND_TIER_UNKNOWN,
    FOUND_TIER_0,
    FOUND_TIER_0_INSTRUMENTED,
    FOUND_TIER_OSR,
    FOUND_TIER_1,
    FOUND_TIER_OPTIMIZED, /* at once, never to be compiled again */
};

/* One piece of machine code. Texts are valid until the walk is asked again. */
struct found_method {
    uint64_t begin, end; /* virtual, [begin, end), funclets included; a stub's end may be 0: not known */
    uint8_t kind;        /* enum found_kind */
    uint8_t tier;        /* enum found_tier */
    bool collectible;    /* may be freed while the process runs */
    bool generic;        /* a method with type arguments of its own */
    uint64_t method_id;  /* address of the MethodDesc; 0 for a stub that has none */
    uint64_t module_id;  /* address of the Module, 0 for dynamic methods */
    uint32_t token;      /* 0x06......; 0 for dynamic methods */
    const char *name;    /* as code_name.h has it; "" when it cannot be told, "[fixup precode]" of a stub */
    const char *module;  /* simple name of the assembly, or "" */
    const char *path;    /* of its file as the runtime has it, or "" */
    const char *target;  /* name of the method that a stub leads to or serves, or "" */
    const char *import;  /* "libc!getenv" when that is imported from a native library, or "" */
    const char *type_params; /* as code_name.h has it: of a dynamic method, what it serves; else "" */
};

struct code_walk_report {
    enum runtime_root_way root; /* how the list of code was found */
    enum layout_way way;        /* how its layout was found */
    const char *layout;         /* "10.0": the version that it was measured on; or the runtime's own, or "" */
    uint32_t checked, agreed;   /* methods whose record was compared with metadata when opening */
    uint64_t methods, dynamic, stubs, unnamed, broken; /* by the last code_walk_list() */
    uint64_t pages;                                    /* of 4 KiB read from the target so far */
    uint64_t modules, ranges;
    bool cut; /* there is more than we are willing to read */
};

struct code_walk;

/*
 * Finds the runtime in `memory` and a layout that fits it. `memory` and `files` (may be NULL) are borrowed
 * for as long as the walk. ERROR_UNSUPPORTED when there is no runtime, it has not run enough methods yet to
 * tell its layout, or none fits.
 */
bool code_walk_open(const struct memory *memory, const struct module_files *files, struct code_walk **out,
                    struct error *err);
/* The same by some ways only, bits 1 << enum layout_way: to compare them. */
bool code_walk_open_by(const struct memory *memory, const struct module_files *files, unsigned ways,
                       struct code_walk **out, struct error *err);
/* NULL is fine. */
void code_walk_close(struct code_walk *walk);
/* Valid as long as the walk; its counts change with it. */
const struct code_walk_report *code_walk_report(const struct code_walk *walk);

/* Forgets what was read, since the process may have gone on. memory->mappings may have been replaced. */
void code_walk_renew(struct code_walk *walk);
/* The same for who asks for little: what was asked for before is not read ahead. */
void code_walk_forget(struct code_walk *walk);

/* Gives back the memory that the opening took, when little will be asked; the rest is read again when needed.
 */
void code_walk_trim(struct code_walk *walk);

/* Return false to stop. */
typedef bool code_walk_fn(void *user, const struct found_method *method);
enum code_walk_which {
    WALK_ALL,
    WALK_COLLECTIBLE, /* only what may be freed while the process runs: dynamic methods and the like */
};
/*
 * Jitted code, by address; precodes and other stubs outside the code heaps are left out: there are tens of
 * thousands. False when `emit` stopped it.
 */
bool code_walk_list(struct code_walk *walk, enum code_walk_which which, code_walk_fn *emit, void *user);
/* The jitted code that holds one of `addrs`, which ascend: as above, and much faster than one by one. */
bool code_walk_list_at(struct code_walk *walk, const uint64_t *addrs, size_t count, code_walk_fn *emit,
                       void *user);
/* The same without names or anything else that takes metadata: begin, end, kind, method_id, collectible. */
bool code_walk_outline_at(struct code_walk *walk, const uint64_t *addrs, size_t count, code_walk_fn *emit,
                          void *user);
/* The piece of code, of any kind, that holds `addr`. False when the runtime knows of none there. */
bool code_walk_find(struct code_walk *walk, uint64_t addr, struct found_method *out);
/*
 * The same of code that may have come since the last look, for a small part of what code_walk_renew() costs:
 * only the map of its heap and its own records are read anew. *out_known: whether that was enough to tell; it
 * is not where code can be freed, and where there was no heap yet.
 */
bool code_walk_find_new(struct code_walk *walk, uint64_t addr, struct found_method *out, bool *out_known);
/*
 * Reads ahead the unwind data and IL map of the jitted code that begins at `begin`, as far as they were read
 * before the pages' `reads` was `since`.
 */
void code_walk_follow(struct code_walk *walk, uint64_t since, uint64_t begin);
/*
 * The IL map of the jitted code at [begin, begin + size_bytes), as a found_method gives it. `major`: the
 * runtime's version, 0 when not known. As jit_il_map_read().
 */
bool code_walk_il_map(struct code_walk *walk, unsigned major, uint64_t begin, uint64_t size_bytes,
                      struct il_map *out, struct error *err);

/* Its layout, and where the runtime is. Valid as long as the walk. */
const struct runtime_layout *code_walk_layout(const struct code_walk *walk);
const struct runtime_root *code_walk_root(const struct code_walk *walk);
/* The types that it knows, for others who read the same memory. As long as the walk, and belongs to it. */
struct loaded_types *code_walk_types(struct code_walk *walk);
/*
 * The name of the type at a MethodTable, as loaded_types has it; NULL when there is none or it cannot be
 * spelled. Valid until the walk is asked again.
 */
const char *code_walk_type_name(struct code_walk *walk, uint64_t table);

#endif
