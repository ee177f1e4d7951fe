#include "analyse/event_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

enum { NAMES_BYTES_MAX = 1000 << 20 };

_Static_assert(sizeof(struct profile_node) == 8, "a row of child_index");

void event_stacks_init(struct event_stacks *stacks, const struct trace *t, bool raw_names, enum event_cut cut)
{
    *stacks = (struct event_stacks){ .cut = cut, .options = { .raw_names = raw_names } };
    stacks->names = mem_alloc(1, sizeof *stacks->names);
    arena_init(&stacks->names->arena, NAMES_BYTES_MAX);
    stack_filter_init(&stacks->filter, NULL, NULL, NULL); /* without patterns none can be wrong */
    frame_table_init(&stacks->frames, t, &stacks->options, &stacks->filter, stacks->names);
    stacks->node_of = mem_alloc(t->stacks.count + 1, sizeof *stacks->node_of);
    stacks->nodes = mem_grow(NULL, &stacks->node_capacity, 64, sizeof *stacks->nodes);
    stacks->nodes[0] = (struct profile_node){ 0 };
    stacks->node_count = 1;
}

void event_stacks_done(struct event_stacks *stacks)
{
    frame_table_done(&stacks->frames);
    stack_filter_done(&stacks->filter);
    profile_free(stacks->names);
    child_index_done(&stacks->index);
    free(stacks->nodes);
    free(stacks->node_of);
}

static uint32_t node_get(struct event_stacks *stacks, uint32_t parent, uint32_t frame)
{
    uint32_t id = child_index_find(&stacks->index, &stacks->nodes->parent, stacks->node_count, parent, frame);
    if (id)
        return id;
    stacks->nodes =
        mem_grow(stacks->nodes, &stacks->node_capacity, stacks->node_count + 1, sizeof *stacks->nodes);
    id = (uint32_t)stacks->node_count++;
    stacks->nodes[id] = (struct profile_node){ parent, frame };
    child_index_add(&stacks->index, parent, frame, id);
    return id;
}

/* Types of the core library whose methods are cut; each list ends with NULL. */
static const char *const collect_types[] = { "System.GC.Collect", "System.GC._Collect", NULL };
/*
 * The second and third have frames of their own where the core library was trimmed, and its code is jitted;
 * the last ones are what compiled code calls for a bad index, a division by zero, a bad cast, a failed
 * initializer.
 */
static const char *const throw_types[] = { "System.Runtime.EH.",
                                           "System.Runtime.StackFrameIterator.",
                                           "System.Runtime.ExceptionServices.InternalCalls.",
                                           "Internal.Runtime.CompilerHelpers.ThrowHelpers.",
                                           "System.Runtime.CompilerServices.CastHelpers.",
                                           "System.Runtime.CompilerServices.InitHelpers.",
                                           "System.Runtime.CompilerServices.StaticsHelpers.",
                                           NULL };
static const char *const wait_types[] = { "System.Threading.Monitor.",
                                          "System.Threading.Lock.",
                                          "System.Threading.Condition.",
                                          "System.Threading.WaitHandle.",
                                          "System.Threading.WaitSubsystem.",
                                          "System.Diagnostics.Tracing.NativeRuntimeEventSource.",
                                          NULL };
static const char *const source_types[] = { "System.Diagnostics.Tracing.EventPipeEventProvider.",
                                            "System.Diagnostics.Tracing.EventProvider.",
                                            "System.Diagnostics.Tracing.EventSource.", NULL };

static const char *const task_types[] = { "System.Threading.Tasks.", "System.Runtime.CompilerServices.",
                                          "System.Diagnostics.Tracing.", "System.Threading.ThreadPool",
                                          NULL };

bool event_frame_is_of(const struct profile_frame *f, const char *start)
{
    const char *name = f->name;
    if (f->module[0] && strcmp(f->module, "System.Private.CoreLib") != 0)
        return false;
    for (; *start; start++) {
        if (*start == '.' && name[0] == ':' && name[1] == ':')
            name++;
        else if (*name != *start)
            return false;
        name++;
    }
    return true;
}

/* `below`: what it called is cut. The runtime's native code throws what a method could not be compiled for.
 */
static bool is_cut(const struct event_stacks *stacks, uint32_t frame, bool below)
{
    static const char *const *const types[] = { [EVENT_CUT_COLLECT] = collect_types,
                                                [EVENT_CUT_THROW] = throw_types,
                                                [EVENT_CUT_WAIT] = wait_types,
                                                [EVENT_CUT_TASK] = task_types,
                                                [EVENT_CUT_SOURCE] = source_types };
    const struct profile_frame *f = &stacks->names->frames[frame];
    if (stacks->cut == EVENT_CUT_NOTHING)
        return false;
    if (below && f->kind == CODE_RUNTIME)
        return true;
    for (const char *const *type = types[stacks->cut]; *type; type++)
        if (event_frame_is_of(f, *type))
            return true;
    return false;
}

uint32_t event_stacks_node(struct event_stacks *stacks, uint32_t stack)
{
    const struct trace *t = stacks->frames.trace;
    if (stack < STACK_ROOTS || stack >= t->stacks.count)
        return 0;
    if (stacks->node_of[stack])
        return stacks->node_of[stack] - 1;
    uint32_t path[TRACE_STACK_DEPTH_MAX];
    size_t depth = 0, leaf = 0;
    for (uint32_t at = stack; at >= STACK_ROOTS && depth < TRACE_STACK_DEPTH_MAX;
         at = t->stacks.rows[at].parent)
        path[depth++] = frame_table_location(&stacks->frames, t->stacks.rows[at].location);
    while (leaf < depth && is_cut(stacks, path[leaf], leaf > 0))
        leaf++;
    if (leaf == depth)
        leaf = 0; /* nothing else is there */
    uint32_t node = 0;
    while (depth > leaf)
        node = node_get(stacks, node, path[--depth]);
    stacks->node_of[stack] = node + 1;
    return node;
}

const struct profile_frame *event_stacks_leaf(const struct event_stacks *stacks, uint32_t node)
{
    return node ? &stacks->names->frames[stacks->nodes[node].frame] : NULL;
}

size_t event_stacks_depth(const struct event_stacks *stacks, uint32_t node)
{
    size_t depth = 0;
    for (; node; node = stacks->nodes[node].parent)
        depth++;
    return depth;
}

const char *event_stacks_text(struct event_stacks *stacks, struct span raw)
{
    return frame_table_text(&stacks->frames, raw);
}
