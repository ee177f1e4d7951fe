#include "symbolize/osr_callers.h"

#include <string.h>

#include "trace/facts.h"

static const struct trace_location *location_of(const struct trace *t, uint32_t stack)
{
    return &t->locations.rows[t->stacks.rows[stack].location];
}

/* Whether a frame is in the first body of the method that `osr` is the second of. */
static bool is_left_over(const struct trace_location *osr, const struct trace_location *caller)
{
    return osr->function && caller->function == osr->function && caller->process == osr->process &&
           (caller->tier == TIER_0 || caller->tier == TIER_0_INSTRUMENTED);
}

void osr_callers_leave_out(struct trace *t)
{
    const char *how = trace_fact_value(t, FACT_STACKS);
    if (!how || strcmp(how, "frame pointers") != 0)
        return;
    /* from the leaves on: what a caller's row loses is not what its callees lose */
    for (size_t i = t->stacks.count; i-- > STACK_ROOTS;) {
        struct trace_stack *row = &t->stacks.rows[i];
        if (row->parent >= STACK_ROOTS && t->locations.rows[row->location].tier == TIER_OSR &&
            is_left_over(&t->locations.rows[row->location], location_of(t, row->parent)))
            row->parent = t->stacks.rows[row->parent].parent;
    }
}
