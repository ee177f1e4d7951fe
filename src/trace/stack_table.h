/*
 * stack_table: the stacks of a trace and the locations they are made of, each once.
 */
#ifndef CLRPERF_TRACE_STACK_TABLE_H
#define CLRPERF_TRACE_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/child_index.h"
#include "base/id_map.h"
#include "trace/trace.h"

/* What is one location. */
struct location_key {
    uint64_t addr;
    uint32_t process, mapping, code;
    bool is_return;
};

/* The rows are the trace's, which every call is given anew: it is always the same. */
struct stack_table {
    struct id_map locations;
    struct child_index stacks;
    uint8_t *ends; /* by stack: enum stack_end */
    size_t ends_capacity;
};

void stack_table_init(struct stack_table *s);
void stack_table_done(struct stack_table *s);
/* The location, added when new: then it was seen first at `time_ns`. */
uint32_t stack_table_location(struct stack_table *s, struct trace *t, const struct location_key *key,
                              uint64_t time_ns);
/* The stack of `parent` with a frame called from it, added when new. */
uint32_t stack_table_push(struct stack_table *s, struct trace *t, uint32_t parent, uint32_t location);

/* Locations below a stack, root first; borrowed. */
struct stack_path {
    uint32_t parent;
    uint32_t count;
    const uint32_t *locations;
};

/* The stack at a path's end; what of it is new is added. */
uint32_t stack_table_add(struct stack_table *s, struct trace *t, struct stack_path path);
/*
 * Shortens paths by what is known of them. All are followed side by side, so that one waits for memory while
 * the others go on: what was not used lately is far away. At most STACK_PATHS_MAX.
 */
enum { STACK_PATHS_MAX = 32 };
void stack_table_follow(const struct stack_table *s, const struct trace *t, struct stack_path *paths,
                        size_t count);
/* How a stack of this table ended. */
static inline enum stack_end stack_table_end(const struct stack_table *s, uint32_t stack)
{
    return (enum stack_end)s->ends[stack];
}

#endif
