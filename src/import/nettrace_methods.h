/*
 * nettrace_methods: the methods that an event stream tells of, as names for its stacks.
 *
 * A stream lists most methods at its end, so stacks are addresses until then. What counts is what lay at an
 * address when the stack was taken: where code was freed and its place used again, stacks become others by
 * their time.
 */
#ifndef CLRPERF_IMPORT_NETTRACE_METHODS_H
#define CLRPERF_IMPORT_NETTRACE_METHODS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/id_map.h"
#include "clr/runtime_events.h"
#include "trace/builder.h"

struct nettrace_methods {
    struct told_method *rows; /* rows[0] is unused */
    size_t count, capacity;
    struct id_map latest; /* by process and address: the row told last */
    struct told_module *modules;
    size_t module_count, module_capacity;
    struct buffer payloads; /* of rows */
    struct buffer text;
    bool is_ours;
    uint64_t refused;   /* beyond our bounds */
    uint64_t malformed; /* events */
};

void nettrace_methods_init(struct nettrace_methods *m);
void nettrace_methods_done(struct nettrace_methods *m);
/* An event about a method: a RUNTIME_EVENT_METHOD_* kind. `verbose`: with names. */
void nettrace_methods_tell(struct nettrace_methods *m, uint32_t process, enum runtime_event_kind kind,
                           bool verbose, uint32_t version, uint64_t time_ns, struct span payload);
/* An event about a module: a RUNTIME_EVENT_MODULE_* kind. */
void nettrace_methods_tell_module(struct nettrace_methods *m, struct trace_builder *b, uint32_t process,
                                  uint32_t version, struct span payload);
/*
 * At the end of the stream: names the locations of all its stacks, of samples and events. `is_ours`: clrperf
 * wrote it, and keeps more behind its methods (clr/kept_rows.h).
 */
void nettrace_methods_name(struct nettrace_methods *m, bool is_ours, struct trace_builder *b);

#endif
