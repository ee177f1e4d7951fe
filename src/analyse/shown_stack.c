#include "analyse/shown_stack.h"

#include <string.h>

bool shown_frame_is_called(const struct shown_frame *frame, const char *method)
{
    size_t size = strlen(method);
    const char *name = frame->frame->name;
    return strncmp(name, method, size) == 0 && (name[size] == 0 || name[size] == '(');
}

bool shown_frame_is_managed(const struct shown_frame *frame)
{
    uint8_t kind = frame->frame->kind;
    return kind == CODE_R2R || kind == CODE_JIT || kind == CODE_DYNAMIC;
}

void shown_stack_read(const struct trace *t, uint32_t stack, const struct profile *p, uint32_t node,
                      struct shown_stack *out)
{
    out->count = 0;
    out->end = trace_stack_end(t, stack);
    /* both lead from the leaf to the root, where a node may follow that says how the stack ended */
    while (stack >= STACK_ROOTS && node && out->count < TRACE_STACK_DEPTH_MAX) {
        out->frames[out->count++] = (struct shown_frame){
            &p->frames[p->nodes[node].frame],
            &t->locations.rows[t->stacks.rows[stack].location],
        };
        stack = t->stacks.rows[stack].parent;
        node = p->nodes[node].parent;
    }
}
