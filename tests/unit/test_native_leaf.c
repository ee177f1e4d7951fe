#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/native_leaf.h"
#include "base/own.h"
#include "clr/method_name.h"
#include "told_fixture.h"

enum { ONE = 10, TWO = 11, FRAMES_MAX = 8 };

/* A letter a frame, root first: upper case is managed, lower case native, '*' one that only calls another
 * form. */
static uint32_t stack_of(struct told_fixture *f, const char *letters)
{
    uint32_t functions[FRAMES_MAX];
    size_t count = strlen(letters);
    for (size_t i = 0; i < count; i++) {
        bool thunk = letters[i] == '*', managed = thunk || (letters[i] >= 'A' && letters[i] <= 'Z');
        char name[32];
        snprintf(name, sizeof name, "%c%s", letters[i], thunk ? METHOD_ASYNC_THUNK : "");
        functions[i] = trace_builder_function(
            &f->b, &(struct trace_function){ .name = trace_add_string(&f->b.trace, name),
                                             .module = trace_add_string(&f->b.trace, "m"),
                                             .kind = managed ? CODE_JIT : CODE_RUNTIME });
    }
    return trace_builder_named_stack(&f->b, functions, count);
}

static void sample(struct told_fixture *f, uint64_t time_ns, uint32_t tid, const char *letters)
{
    trace_push_sample(&f->b.trace.samples, time_ns, trace_builder_thread(&f->b, f->pid, tid, 0),
                      stack_of(f, letters), 1, SAMPLE_CPU, 0);
}

static const struct {
    const char *name, *event;
    const char *sample, *other; /* `other` is a second one, or NULL */
    int64_t after_ns, other_after_ns;
    uint32_t tid;
    const char *native; /* the leaf first; "": nothing is lent */
    int64_t lent_after_ns;
} cases[] = {
    { "the same frames", "AB", "rAsBxy", NULL, 100, 0, ONE, "yx", 100 },
    { "before it", "AB", "rABx", NULL, -100, 0, ONE, "x", -100 },
    { "the nearest one", "AB", "ABx", "ABy", 100, -50, ONE, "y", -50 },
    { "the nearest one that fits", "AB", "ABx", "ACy", 100, -50, ONE, "x", 100 },
    { "not too far", "AB", "ABx", NULL, NATIVE_LEAF_NS, 0, ONE, "x", NATIVE_LEAF_NS },
    { "too far", "AB", "ABx", NULL, NATIVE_LEAF_NS + 1, 0, ONE, "", 0 },
    { "too long ago", "AB", "ABx", NULL, -NATIVE_LEAF_NS - 1, 0, ONE, "", 0 },
    { "another thread", "AB", "ABx", NULL, 100, 0, TWO, "", 0 },
    { "another leaf", "AB", "ACx", NULL, 100, 0, ONE, "", 0 },
    { "another root", "AB", "CBx", NULL, 100, 0, ONE, "", 0 },
    { "deeper", "AB", "ABCx", NULL, 100, 0, ONE, "", 0 },
    { "less deep", "AB", "Ax", NULL, 100, 0, ONE, "", 0 },
    { "from a deeper root", "AB", "CABx", NULL, 100, 0, ONE, "", 0 },
    { "what a runtime leaves out", "AB", "A*B*x", NULL, 100, 0, ONE, "x", 100 },
    { "in managed code itself", "AB", "AB", NULL, 100, 0, ONE, "", 0 },
    { "no managed frame", "AB", "xy", NULL, 100, 0, ONE, "", 0 },
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum { EVENT_NS = 5000000 };
        struct told_fixture f;
        struct event_stacks stacks;
        struct native_leaves leaves;
        struct native_leaf leaf;
        char native[FRAMES_MAX + 1] = "";
        told_fixture_begin(&f);
        f.stack = stack_of(&f, cases[i].event);
        told_event(&f, EVENT_NS, ONE, 80, 1);
        sample(&f, (uint64_t)(EVENT_NS + cases[i].after_ns), cases[i].tid, cases[i].sample);
        if (cases[i].other)
            sample(&f, (uint64_t)(EVENT_NS + cases[i].other_after_ns), cases[i].tid, cases[i].other);
        event_stacks_init(&stacks, &f.b.trace, false, EVENT_CUT_NOTHING);
        native_leaves_init(&leaves, &stacks, &f.b.trace);
        bool found = native_leaf_find(&leaves, &f.b.trace.events.rows[1], &leaf);
        for (size_t k = 0; found && k < leaf.count; k++)
            native[k] = native_leaf_frame(&leaves, &leaf, k)->name[0];
        if (strcmp(native, cases[i].native) != 0 || (found && leaf.after_ns != cases[i].lent_after_ns))
            fail_msg("%s: '%s'", cases[i].name, native);
        native_leaves_done(&leaves);
        event_stacks_done(&stacks);
        told_fixture_end(&f);
    }
}

/* An event without a thread or a stack has nothing to go by. */
static void test_nothing(void **state)
{
    (void)state;
    struct told_fixture f;
    struct event_stacks stacks;
    struct native_leaves leaves;
    struct native_leaf leaf;
    told_fixture_begin(&f);
    told_event(&f, 1000, ONE, 80, 1);
    f.stack = stack_of(&f, "A");
    told_event(&f, 1000, 0, 80, 1);
    sample(&f, 1000, ONE, "Ax");
    event_stacks_init(&stacks, &f.b.trace, false, EVENT_CUT_NOTHING);
    native_leaves_init(&leaves, &stacks, &f.b.trace);
    for (size_t i = 1; i < f.b.trace.events.count; i++)
        assert_false(native_leaf_find(&leaves, &f.b.trace.events.rows[i], &leaf));
    native_leaves_done(&leaves);
    event_stacks_done(&stacks);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
