/*
 * runtime_events: what the runtime says of itself, of methods, modules and collections in its event payloads.
 *
 * Events 141-144 (load, unload) and 151-154 of Microsoft-Windows-DotNETRuntime, and the same of
 * Microsoft-Windows-DotNETRuntimeRundown, which lists at the end of a session what exists then; events
 * 1-3 and 7-9 of the former: a collection's begin and end, and when threads were stopped for it; 187 of both,
 * and the stream's own event: whose runtime it is.
 * Specified in dotnet/runtime, src/coreclr/vm/ClrEtwAll.man. Texts are UTF-16LE, borrowed.
 */
#ifndef CLRPERF_CLR_RUNTIME_EVENTS_H
#define CLRPERF_CLR_RUNTIME_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "clr/provider_names.h"

/* Keywords of both providers. */
enum {
    RUNTIME_KEYWORD_GC = 0x1,
    RUNTIME_KEYWORD_LOADER = 0x8,
    RUNTIME_KEYWORD_JIT = 0x10,
    RUNTIME_KEYWORD_NGEN = 0x20,
    /* Makes the end of a collectible assembly tell of its methods too, not only of its module (3.1 to 10,
       seen). */
    RUNTIME_KEYWORD_END_ENUMERATION = 0x80,
};
/* Objects picked at random; since .NET 10. */
#define RUNTIME_KEYWORD_ALLOCATION_SAMPLING UINT64_C(0x80000000000)

enum { RUNTIME_ALLOCATION_TICK = 10 }; /* an event's id */

enum runtime_event_kind {
    RUNTIME_EVENT_OTHER,
    RUNTIME_EVENT_METHOD_LOAD,
    RUNTIME_EVENT_METHOD_UNLOAD,
    RUNTIME_EVENT_METHOD_EXISTS, /* rundown */
    RUNTIME_EVENT_MODULE_LOAD,
    RUNTIME_EVENT_MODULE_UNLOAD,
    RUNTIME_EVENT_MODULE_EXISTS, /* rundown */
    RUNTIME_EVENT_RUNDOWN_BEGIN, /* the recording is over: what follows lists what there is */
    RUNTIME_EVENT_RUNDOWN_DONE,  /* nothing more will be listed */
    RUNTIME_EVENT_GC_START,      /* from here on events that are kept as they are */
    RUNTIME_EVENT_GC_END,
    RUNTIME_EVENT_SUSPEND_BEGIN, /* threads are being stopped, by the one that tells it */
    RUNTIME_EVENT_SUSPEND_END,   /* they all stand still */
    RUNTIME_EVENT_RESTART_BEGIN, /* they are let go */
    RUNTIME_EVENT_RESTART_END,
};

/* What an event of this provider (UTF-16LE) and id is. */
enum runtime_event_kind runtime_event_kind(struct span provider, uint32_t event_id);
/* The same of a provider in UTF-8. */
enum runtime_event_kind runtime_event_kind_named(const char *provider, uint32_t event_id);
/* Whether its payload has names: 143, 144 and not 141, 142. */
bool runtime_event_is_verbose(struct span provider, uint32_t event_id);

/* Bits of runtime_method_event.flags. */
enum {
    RUNTIME_METHOD_DYNAMIC = 0x1,
    RUNTIME_METHOD_GENERIC = 0x2,
    RUNTIME_METHOD_SHARED = 0x4,
    RUNTIME_METHOD_JITTED = 0x8, /* clear: precompiled */
    RUNTIME_METHOD_HELPER = 0x10,
    RUNTIME_METHOD_TIER_SHIFT = 7, /* of jitted code: enum runtime_tier */
};

enum runtime_tier {
    RUNTIME_TIER_UNKNOWN,
    RUNTIME_TIER_MINOPTS,
    RUNTIME_TIER_OPTIMIZED, /* tiering does not apply */
    RUNTIME_TIER_QUICK,
    RUNTIME_TIER_1,
    RUNTIME_TIER_1_OSR,
    RUNTIME_TIER_QUICK_INSTRUMENTED,
    RUNTIME_TIER_1_INSTRUMENTED,
};

/* One region of a method's code: a method split into hot and cold has two. */
struct runtime_method_event {
    uint64_t method_id; /* both ids are addresses and unique only while what they name lives */
    uint64_t module_id;
    uint64_t addr;
    uint32_t size_bytes;
    uint32_t token; /* 0x06... ; of no use for dynamic methods */
    uint32_t flags;
    struct span type; /* "Ns.Type`1+Nested[System.__Canon]", "dynamicClass"; empty without names */
    struct span name;
    struct span signature; /* "instance void  (class System.String,int32)" */
    struct span rest;      /* what stands behind those */
    uint64_t rejit_id;     /* 0: the code of the method's own IL */
};

/* Where the code of a method event lies, which all its versions have. */
struct runtime_method_range {
    uint64_t addr, end;
};

/* RuntimeInformation (187): which runtime it is. */
struct runtime_information_event {
    unsigned major, minor, build; /* of its file: 10.0.1226 is 10.0.12 of 2026 */
};

/* ProcessInfo of the stream's own provider. */
struct runtime_process_info {
    struct span command_line; /* arguments with blanks between */
    struct span arch;         /* "x64"; empty in runtime 3.x */
};

struct runtime_module_event {
    uint64_t module_id;
    uint64_t assembly_id;
    uint32_t flags;
    struct span il_path;     /* may be a bare name for a module that is in no file */
    struct span native_path; /* of precompiled code elsewhere; mostly empty */
    uint8_t pdb_guid[16];    /* zero when the event is older than version 2 */
    uint32_t pdb_age;
};

/*
 * Reads events 141-144. The runtime may append to any payload; runtime 3.x leaves a missing text out
 * altogether, which is taken as empty. Fails with ERROR_INPUT when the fixed part is cut short.
 */
bool runtime_method_event_read(struct span payload, uint32_t version, bool verbose,
                               struct runtime_method_event *out, struct error *err);
/* The same events; fails without an error also when there is no code, or it has no end. */
bool runtime_method_range_read(struct span payload, struct runtime_method_range *out);
bool runtime_information_read(struct span payload, struct runtime_information_event *out, struct error *err);
bool runtime_process_info_read(struct span payload, struct runtime_process_info *out, struct error *err);
/* Reads events 152-154 (ModuleLoad, ModuleUnload, ModuleDCEnd). */
bool runtime_module_event_read(struct span payload, uint32_t version, struct runtime_module_event *out,
                               struct error *err);

enum runtime_gc_type { RUNTIME_GC_BLOCKING, RUNTIME_GC_BACKGROUND, RUNTIME_GC_IN_BACKGROUND };

struct runtime_gc_start_event {
    uint32_t number;     /* counts up; has gaps */
    uint32_t generation; /* the oldest that is collected */
    uint32_t reason;     /* 1: the program asked for it, 0, 4, 5, ...: for want of room */
    uint32_t type;       /* enum runtime_gc_type; a background one may turn out to block */
};

struct runtime_gc_end_event {
    uint32_t number, generation;
};

/* Why threads are stopped. */
enum runtime_suspend_reason { RUNTIME_SUSPEND_OTHER, RUNTIME_SUSPEND_GC, RUNTIME_SUSPEND_GC_PREP = 6 };

/* Each fails with ERROR_INPUT when the payload is cut short. `reason`: enum runtime_suspend_reason, and
 * others. */
bool runtime_gc_start_read(struct span payload, struct runtime_gc_start_event *out, struct error *err);
bool runtime_gc_end_read(struct span payload, struct runtime_gc_end_event *out, struct error *err);
bool runtime_suspend_begin_read(struct span payload, uint32_t *out_reason, struct error *err);

static inline enum runtime_tier runtime_method_tier(const struct runtime_method_event *m)
{
    return m->flags & RUNTIME_METHOD_JITTED ? (enum runtime_tier)(m->flags >> RUNTIME_METHOD_TIER_SHIFT & 7)
                                            : RUNTIME_TIER_UNKNOWN;
}

/* The cold part of a method that was split. */
static inline bool runtime_method_is_cold(const struct runtime_method_event *m)
{
    return m->flags >> 28 == 1;
}

/*
 * Appends the runtime's own spelling as UTF-8: "Ns.Type::Method(class System.String,int32)"; the
 * signature from its first parenthesis on. Returns how many units were no characters (U+FFFD).
 */
size_t runtime_method_append_name(struct buffer *out, const struct runtime_method_event *m);

/*
 * Whether an event has a text at all: for none the runtime says "NULL", as for each type of Native AOT, or
 * the message of an exception that was given none.
 */
bool runtime_text_is_told(struct span text);

#endif
