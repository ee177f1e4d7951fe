/*
 * module_names: what the modules of the runtimes of a trace are called, by the ids that events have.
 *
 * Told by the runtimes' events about modules, of loads and of the list at the end of a session; where they
 * are missing, what is known of the code at an address says it.
 */
#ifndef CLRPERF_ANALYSE_MODULE_NAMES_H
#define CLRPERF_ANALYSE_MODULE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "trace/trace.h"

struct module_name {
    uint64_t module_id;
    uint32_t process;
    char *name; /* owned */
};

struct module_names {
    const struct trace *trace; /* borrowed */
    struct module_name *rows;  /* [0] is unused */
    size_t count, capacity;
    struct id_map ids;
    struct id_map codes; /* rows of the trace's codes, by process and address */
};

void module_names_init(struct module_names *names, const struct trace *t);
void module_names_done(struct module_names *names);
/* "System.Linq", or "" when nobody told. */
const char *module_names_of(const struct module_names *names, uint32_t process, uint64_t module_id);
/* The module of the method whose code begins there, or "". */
const char *module_names_of_code(const struct module_names *names, uint32_t process, uint64_t addr);

#endif
