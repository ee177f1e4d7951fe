/*
 * told_code: the jitted code of a trace, as runtimes and their memory tell of it, and the assemblies it is
 * of.
 *
 * Both tell of the same code, each of what the other does not: events know since when it lives, memory which
 * instance of a generic method it is, and what a stub serves.
 */
#ifndef CLRPERF_COLLECT_TOLD_CODE_H
#define CLRPERF_COLLECT_TOLD_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/runtime_session.h"
#include "trace/builder.h"

struct told_code;

/* One change of one method, as it can wait for its turn. */
struct code_change {
    uint64_t time_ns, addr, size_bytes, module_id;
    uint32_t process, name, token;
    uint32_t type_params; /* string; 0: none that are told */
    uint8_t change;       /* enum runtime_method_change */
    uint8_t tier;
    uint8_t resolver; /* enum resolver */
    bool dynamic, generic;
};

/* `b` is borrowed. */
struct told_code *told_code_new(struct trace_builder *b);
/* NULL is fine. */
void told_code_free(struct told_code *told);

/* `resolver`: enum resolver, who tells. */
struct code_change told_code_change(struct told_code *told, uint32_t process, uint8_t resolver,
                                    const struct runtime_method *method);
/* Where events told of a method at that place, too, that is believed: they know since when. */
void told_code_apply(struct told_code *told, const struct code_change *change);
/* Whether a code is of a generic method, and nobody has said of which instance: memory tells. */
bool told_code_is_any_instance(const struct told_code *told, uint32_t code);

void told_code_module(struct told_code *told, uint32_t process, const struct runtime_module *module);
/*
 * The next code of a process's behind *code (0 at first) whose module is not known; false when there is none.
 * A runtime tells of modules that were loaded before only in its list at the end.
 */
bool told_code_next_without_module(const struct told_code *told, uint32_t process, uint32_t *code,
                                   uint64_t *addr);
/* Tells each method its assembly, where that is known by now. */
void told_code_put_modules(struct told_code *told);

#endif
