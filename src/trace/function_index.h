/*
 * function_index: finds the row of a function in a trace by its properties.
 */
#ifndef CLRPERF_TRACE_FUNCTION_INDEX_H
#define CLRPERF_TRACE_FUNCTION_INDEX_H

#include "base/id_map.h"
#include "trace/trace.h"

struct function_index {
    struct id_map ids;
};

/* Knows the functions that are in the trace already. */
void function_index_init(struct function_index *index, const struct trace *t);
void function_index_done(struct function_index *index);
/* The function with these properties, added when new. */
uint32_t function_index_add(struct function_index *index, struct trace *t,
                            const struct trace_function *wanted);

#endif
