/*
 * event_stacks: the stacks of events as paths of named frames, to group events by them and to show them.
 *
 * A path is a node; the same names are the same path, whatever addresses were on the stack. Node 0 is no
 * stack at all. Frames at the leaf that every event of a kind has, as the runtime's own code raises it, are
 * cut.
 */
#ifndef CLRPERF_ANALYSE_EVENT_STACKS_H
#define CLRPERF_ANALYSE_EVENT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/frame_table.h"
#include "base/child_index.h"

/* What is cut at the leaf. */
enum event_cut {
    EVENT_CUT_NOTHING,
    EVENT_CUT_COLLECT, /* GC.Collect: who calls it is the leaf */
    EVENT_CUT_THROW,   /* the runtime's dispatch of exceptions: the thrower is the leaf */
    EVENT_CUT_WAIT,    /* the slow path of a lock or wait: who wants it is the leaf */
    EVENT_CUT_TASK,    /* the task library: who schedules or awaits is the leaf */
    EVENT_CUT_SOURCE,  /* how an event source writes: who tells is the leaf */
};

struct event_stacks {
    struct profile *names; /* holds the frames and nothing else */
    struct profile_options options;
    struct stack_filter filter;
    struct frame_table frames;
    struct child_index index;
    struct profile_node *nodes; /* [0] is the root */
    size_t node_count, node_capacity;
    uint32_t *node_of; /* by stack of the trace: one more than the node, 0: not looked at */
    enum event_cut cut;
};

void event_stacks_init(struct event_stacks *stacks, const struct trace *t, bool raw_names,
                       enum event_cut cut);
void event_stacks_done(struct event_stacks *stacks);

/* The path of a stack of the trace; 0 when there is none. */
uint32_t event_stacks_node(struct event_stacks *stacks, uint32_t stack);
/* Its leaf, or NULL for node 0. */
const struct profile_frame *event_stacks_leaf(const struct event_stacks *stacks, uint32_t node);
/* The frame one up, and so on: a node's parent; 0 at the root. */
static inline uint32_t event_stacks_caller(const struct event_stacks *stacks, uint32_t node)
{
    return stacks->nodes[node].parent;
}
/* How many frames it has. */
size_t event_stacks_depth(const struct event_stacks *stacks, uint32_t node);
/*
 * Whether it is a method of the core library whose name starts so; raw names have :: before the method. Of a
 * process that was gone at once the module may not be known, and the name has to do.
 */
bool event_frame_is_of(const struct profile_frame *f, const char *start);
/* Text of strangers as it can be shown, kept as long as the stacks. */
const char *event_stacks_text(struct event_stacks *stacks, struct span raw);

#endif
