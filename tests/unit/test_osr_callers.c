/* Chains of frame pointers through methods that were replaced while they ran. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "symbolize/osr_callers.h"
#include "trace/facts.h"

enum { MAIN = 1, LOOP, LEAF }; /* functions */
enum { FRAMES_MAX = 5 };

struct frame {
    uint32_t function;
    uint8_t tier;
};

static const struct {
    const char *name;
    struct frame frames[FRAMES_MAX]; /* from the outermost on */
    uint32_t left[FRAMES_MAX];
} cases[] = {
    { "on the stack",
      { { MAIN, TIER_0 }, { LOOP, TIER_0 }, { LOOP, TIER_OSR }, { LEAF, TIER_1 } },
      { MAIN, LOOP, LEAF } },
    { "instrumented before, and running itself",
      { { MAIN, TIER_0 }, { LOOP, TIER_0_INSTRUMENTED }, { LOOP, TIER_OSR } },
      { MAIN, LOOP } },
    { "calls itself: the first body is there, too",
      { { LOOP, TIER_0 }, { LOOP, TIER_0 }, { LOOP, TIER_OSR }, { LEAF, TIER_1 } },
      { LOOP, LOOP, LEAF } },
    { "both are replaced",
      { { MAIN, TIER_0 }, { MAIN, TIER_OSR }, { LOOP, TIER_0 }, { LOOP, TIER_OSR } },
      { MAIN, LOOP } },
    { "stopped where it still has its caller",
      { { MAIN, TIER_0 }, { LOOP, TIER_OSR }, { LEAF, TIER_1 } },
      { MAIN, LOOP, LEAF } },
    { "calls itself, and is compiled well",
      { { LOOP, TIER_1 }, { LOOP, TIER_OSR }, { LOOP, TIER_1 } },
      { LOOP, LOOP, LOOP } },
    { "nothing above it", { { LOOP, TIER_OSR } }, { LOOP } },
    { "without names", { { 0, TIER_0 }, { 0, TIER_OSR } }, { 0, 0 } },
};

/* The stack of some frames; `count` of them. */
static uint32_t add_stack(struct trace *t, const struct frame *frames, size_t count)
{
    uint32_t stack = STACK_WHOLE;
    for (size_t i = 0; i < count; i++) {
        uint32_t location = trace_push(&t->locations), id = trace_push(&t->stacks);
        t->locations.rows[location] =
            (struct trace_location){ .process = 1, .function = frames[i].function, .tier = frames[i].tier };
        t->stacks.rows[id] = (struct trace_stack){ stack, location };
        stack = id;
    }
    return stack;
}

static void check_stack(const struct trace *t, uint32_t stack, const uint32_t *functions, size_t count,
                        const char *name)
{
    for (; count-- > 0; stack = t->stacks.rows[stack].parent)
        if (stack < STACK_ROOTS ||
            t->locations.rows[t->stacks.rows[stack].location].function != functions[count])
            fail_msg("%s: frame %zu is another", name, count);
    if (stack != STACK_WHOLE)
        fail_msg("%s: there are more frames", name);
}

static void run_case(size_t i, const char *how)
{
    struct trace t;
    trace_init(&t);
    while (t.stacks.count < STACK_ROOTS)
        trace_push(&t.stacks);
    if (how)
        trace_set_fact(&t, FACT_STACKS, how);
    bool ours = how && strcmp(how, "frame pointers") == 0;
    size_t count = 0, left = 0;
    uint32_t all[FRAMES_MAX];
    while (count < FRAMES_MAX && cases[i].frames[count].tier) {
        all[count] = cases[i].frames[count].function;
        count++;
    }
    while (left < FRAMES_MAX && (cases[i].left[left] || (all[0] == 0 && left < count)))
        left++;
    uint32_t stack = add_stack(&t, cases[i].frames, count);
    osr_callers_leave_out(&t);
    check_stack(&t, stack, ours ? cases[i].left : all, ours ? left : count, cases[i].name);
    trace_done(&t);
}

static void test_frame_pointers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        run_case(i, "frame pointers");
}

/* What was unwound knows callers. */
static void test_unwound(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        run_case(i, "unwound");
        run_case(i, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_pointers),
        cmocka_unit_test(test_unwound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
