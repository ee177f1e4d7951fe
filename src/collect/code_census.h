/*
 * code_census: the code that one process has at this moment, as a trace without samples.
 *
 * What is mapped, from /proc; jitted methods from its memory, else from its runtime. Or both from the core
 * dump it left. Names of everything else are in files, and others find them.
 */
#ifndef CLRPERF_COLLECT_CODE_CENSUS_H
#define CLRPERF_COLLECT_CODE_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/core_target.h"
#include "collect/memory_session.h"
#include "collect/target.h"
#include "collect/target_files.h"
#include "trace/builder.h"

enum { CODE_CENSUS_PATIENCE_MS = 15000 /* with a runtime that lists its methods */ };

struct code_census {
    struct trace_builder b;
    struct target_files files;     /* of a running process */
    struct core_target *core;      /* of one that left a dump: borrowed; NULL when it runs */
    uint32_t process;              /* its row */
    struct memory_session *memory; /* NULL when the memory cannot be read */
    enum resolver told_by;         /* RESOLVER_MEMORY, RESOLVER_EVENTPIPE, or RESOLVER_NONE: nobody told */
    struct error memory_error;     /* why not from memory, where it was not */
    struct error runtime_error;    /* and why not by the runtime either */
};

/* Which jitted methods; zeroed: all. */
struct code_census_choice {
    const uint64_t *addrs; /* those that hold one of these, ascending */
    size_t count;
    bool none;           /* the process is no .NET process */
    bool by_memory_only; /* its runtime is not asked where its memory may not be read */
};

/*
 * ERROR_TARGET when the process has ended meanwhile, ERROR_PERMISSION when its mappings may not be seen. That
 * nobody told of jitted methods is no failure. On success the caller ends *out with code_census_done().
 */
bool code_census_take(const struct target *target, const struct code_census_choice *choice,
                      struct code_census *out, struct error *err);
/* Of a dump, which is borrowed for as long as *out. Ended in the same way. */
void code_census_take_core(struct core_target *core, const struct code_census_choice *choice,
                           struct code_census *out);
void code_census_done(struct code_census *census);

#endif
