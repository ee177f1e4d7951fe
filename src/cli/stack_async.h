/*
 * stack_async: the chains of async methods at one look, with names and lines.
 */
#ifndef CLRPERF_CLI_STACK_ASYNC_H
#define CLRPERF_CLI_STACK_ASYNC_H

#include "base/buffer.h"
#include "base/json_writer.h"
#include "clr/async_chains.h"
#include "collect/live_memory.h"
#include "collect/process_stacks.h"
#include "symbolize/symbolizer.h"

/* Where an await is in the source. */
struct async_place {
    char *file; /* owned; NULL: not known */
    uint32_t line, il_off;
};

struct stack_async {
    struct error problem; /* kind ERROR_NONE: the heap was walked */
    struct heap_map map;
    struct async_graph graph;
    struct async_chains chains;
    char **names;               /* of the graph's types, as people read them. Owned */
    struct async_place *own;    /* of the graph's types: where a method that has no state machine awaits */
    struct async_place *places; /* of the chains' frames */
    uint64_t stopped_ns;        /* so long the process stood still; 0: it did not */
};

/* Who gives names. All is borrowed. */
struct stack_async_naming {
    struct trace_builder *b;                  /* has the process and its mappings, and takes its code */
    uint32_t process;                         /* row of it */
    const struct symbolizer_options *options; /* name code, and say where symbols that were fetched are */
    bool raw_names;
};

/*
 * Walks the heap of what `stacks` looks at. `live`: the memory of a running process, which stands still
 * meanwhile; NULL for a core dump. What cannot be had is in out->problem. Undo with stack_async_done().
 */
void stack_async_read(struct process_stacks *stacks, struct live_memory *live,
                      const struct stack_async_naming *naming, struct stack_async *out);
void stack_async_done(struct stack_async *async);

/* For people; nothing when there is a problem. */
void stack_async_text(const struct stack_async *async, struct buffer *out);
/* The value of "async" in clrperf.stack/1. */
void stack_async_json(const struct stack_async *async, struct json_writer *w);

#endif
