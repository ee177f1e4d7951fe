#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/event_tally.h"
#include "base/own.h"
#include "told_fixture.h"

#define CORE "System.Private.CoreLib"

static uint32_t core_stack(struct told_fixture *f, const char *leaf)
{
    uint32_t functions[2] = {
        trace_builder_function(&f->b,
                               &(struct trace_function){ .name = trace_add_string(&f->b.trace, "App.Main"),
                                                         .module = trace_add_string(&f->b.trace, "app"),
                                                         .kind = CODE_JIT }),
        trace_builder_function(&f->b, &(struct trace_function){ .name = trace_add_string(&f->b.trace, leaf),
                                                                .module = trace_add_string(&f->b.trace, CORE),
                                                                .kind = CODE_R2R }),
    };
    return trace_builder_named_stack(&f->b, functions, 2);
}

/* Native code of the runtime throws for a method, as when its assembly cannot be found; `leaf` calls that. */
static uint32_t native_stack(struct told_fixture *f, const char *leaf)
{
    static const char *const modules[] = { "app", "libcoreclr.so", CORE };
    static const enum code_kind kinds[] = { CODE_JIT, CODE_RUNTIME, CODE_R2R };
    const char *names[] = { "App.Main", "libcoreclr.so!0x5fb350", leaf };
    uint32_t functions[3];
    for (size_t i = 0; i < 3; i++)
        functions[i] = trace_builder_function(
            &f->b, &(struct trace_function){ .name = trace_add_string(&f->b.trace, names[i]),
                                             .module = trace_add_string(&f->b.trace, modules[i]),
                                             .kind = kinds[i] });
    return trace_builder_named_stack(&f->b, functions, 3);
}

static const char *leaf_of(struct told_fixture *f, uint32_t stack, enum event_cut cut, char out[128])
{
    struct event_stacks stacks;
    event_stacks_init(&stacks, &f->b.trace, false, cut);
    const struct profile_frame *leaf = event_stacks_leaf(&stacks, event_stacks_node(&stacks, stack));
    strcpy(out, leaf ? leaf->name : "none");
    event_stacks_done(&stacks);
    return out;
}

static void test_cut(void **state)
{
    (void)state;
    static const struct {
        const char *leaf;
        enum event_cut cut;
        bool is_cut;
    } cases[] = {
        { "System.Runtime.EH::DispatchEx()", EVENT_CUT_THROW, true },
        { "System.Runtime.EH::DispatchEx()", EVENT_CUT_NOTHING, false },
        { "System.Runtime.EHInfo::Read()", EVENT_CUT_THROW, false },
        { "System.Runtime.StackFrameIterator::Init()", EVENT_CUT_THROW, true },
        { "System.Runtime.ExceptionServices.InternalCalls::RhpSfiInit()", EVENT_CUT_THROW, true },
        { "System.Runtime.ExceptionServices.ExceptionDispatchInfo::Throw()", EVENT_CUT_THROW, false },
        { "System.Threading.Monitor::Enter_Slowpath()", EVENT_CUT_WAIT, true },
        { "System.Threading.Lock::TryEnterSlow()", EVENT_CUT_WAIT, true },
        { "System.Threading.Thread::Sleep()", EVENT_CUT_WAIT, false },
        { "System.Diagnostics.Tracing.EventSource::WriteEvent()", EVENT_CUT_SOURCE, true },
    };
    struct told_fixture f;
    char leaf[128];
    told_fixture_begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        leaf_of(&f, core_stack(&f, cases[i].leaf), cases[i].cut, leaf);
        assert_int_equal(strcmp(leaf, "App.Main") == 0, cases[i].is_cut);
    }
    /* when nothing else is there the stack stays whole; the same name in another module stays, too */
    uint32_t only = told_stack(&f, CORE, (const char *const[]){ "System.Runtime.EH::DispatchEx()", NULL });
    assert_string_equal(leaf_of(&f, only, EVENT_CUT_THROW, leaf), "System.Runtime.EH.DispatchEx");
    uint32_t other =
        told_stack(&f, "app", (const char *const[]){ "M", "System.Runtime.EH::DispatchEx()", NULL });
    assert_string_equal(leaf_of(&f, other, EVENT_CUT_THROW, leaf), "System.Runtime.EH.DispatchEx");
    uint32_t native = native_stack(&f, "System.Runtime.EH::DispatchEx()");
    assert_string_equal(leaf_of(&f, native, EVENT_CUT_THROW, leaf), "App.Main");
    assert_string_equal(leaf_of(&f, native, EVENT_CUT_NOTHING, leaf), "System.Runtime.EH.DispatchEx");
    assert_string_equal(leaf_of(&f, native_stack(&f, "App.Throw"), EVENT_CUT_THROW, leaf), "App.Throw");
    assert_string_equal(leaf_of(&f, 0, EVENT_CUT_THROW, leaf), "none");
    assert_string_equal(leaf_of(&f, 4000000, EVENT_CUT_THROW, leaf), "none");
    told_fixture_end(&f);
}

static struct span text(const char *s)
{
    return span_of(s, strlen(s));
}

static void test_groups(void **state)
{
    (void)state;
    struct told_fixture f;
    struct event_stacks stacks;
    struct event_tally tally;
    struct event_groups groups;
    told_fixture_begin(&f);
    uint32_t a = told_stack(&f, "app", (const char *const[]){ "Main", "A", NULL });
    uint32_t b = told_stack(&f, "app", (const char *const[]){ "Main", "B", "A", NULL });
    event_stacks_init(&stacks, &f.b.trace, false, EVENT_CUT_NOTHING);
    event_tally_init(&tally, &stacks);
    uint32_t at = event_stacks_node(&stacks, a), bt = event_stacks_node(&stacks, b);
    struct event_weight w = { .weight = 10, .variance = 1, .objects = 2 };
    assert_true(event_tally_add(&tally, text("Small"), text("x"), at, 1, 100, &w));
    assert_true(event_tally_add(&tally, text("Small"), text("x"), at, 1, 50, &w));
    assert_true(event_tally_add(&tally, text("Small"), text("y"), bt, 2, 70, &w));
    w.weight = 100;
    assert_true(event_tally_add(&tally, text("Large"), text(""), bt, 1, 60, &w));
    assert_int_equal(tally.row_count, 4);
    assert_true(tally.total.weight == 130 && tally.total.count == 4);

    event_groups_init(&groups, &tally, TALLY_BY_TEXT);
    assert_int_equal(groups.count, 2);
    assert_string_equal(intern_text(&tally.texts, event_group_row(&groups, &groups.rows[0], 0)->text),
                        "Large");
    const struct tally_group *small = &groups.rows[1];
    assert_int_equal(small->sum.count, 3);
    assert_int_equal(small->count, 2);
    assert_int_equal(event_group_row(&groups, small, 0)->sum.count, 2);
    assert_int_equal(small->sum.first_ns, 50);
    assert_int_equal(small->sum.last_ns, 100);
    assert_true(small->sum.objects == 6 && small->sum.variance == 3 && small->sum.most == 10);
    event_groups_done(&groups);

    event_groups_init(&groups, &tally, TALLY_BY_STACK);
    assert_int_equal(groups.count, 2);
    assert_true(groups.rows[0].sum.weight == 110);
    event_groups_done(&groups);
    event_groups_init(&groups, &tally, TALLY_BY_FUNCTION); /* both end in A */
    assert_int_equal(groups.count, 1);
    event_groups_done(&groups);
    event_groups_init(&groups, &tally, TALLY_BY_PROCESS);
    assert_int_equal(groups.count, 2);
    assert_true(groups.rows[1].sum.weight == 10);
    event_groups_done(&groups);
    event_tally_done(&tally);

    event_tally_init(&tally, &stacks);
    event_groups_init(&groups, &tally, TALLY_BY_TEXT);
    assert_int_equal(groups.count, 0);
    event_groups_done(&groups);
    event_tally_done(&tally);
    event_stacks_done(&stacks);
    told_fixture_end(&f);
}

/* Groups of the same weight come by name, whatever came first. */
static void test_equal_groups(void **state)
{
    (void)state;
    static const char *const names[] = { "delta", "alpha", "charlie", "bravo" };
    struct told_fixture f;
    struct event_stacks stacks;
    struct event_tally tally;
    struct event_groups groups;
    told_fixture_begin(&f);
    event_stacks_init(&stacks, &f.b.trace, false, EVENT_CUT_NOTHING);
    event_tally_init(&tally, &stacks);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        event_tally_add(&tally, text(names[i]), text(""), 0, 1, i, &(struct event_weight){ .weight = 1 });
    event_groups_init(&groups, &tally, TALLY_BY_TEXT);
    static const char *const sorted[] = { "alpha", "bravo", "charlie", "delta" };
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
        assert_string_equal(intern_text(&tally.texts, event_group_row(&groups, &groups.rows[i], 0)->text),
                            sorted[i]);
    event_groups_done(&groups);
    event_tally_done(&tally);
    event_stacks_done(&stacks);
    told_fixture_end(&f);
}

/* As many groups of one weight as a capture has exceptions: in no time that grows with their square. */
static void test_many_equal_groups(void **state)
{
    enum { GROUPS = 300000 };
    (void)state;
    struct told_fixture f;
    struct event_stacks stacks;
    struct event_tally tally;
    struct event_groups groups;
    char name[16];
    told_fixture_begin(&f);
    event_stacks_init(&stacks, &f.b.trace, false, EVENT_CUT_NOTHING);
    event_tally_init(&tally, &stacks);
    for (unsigned i = GROUPS; i-- > 0;) {
        snprintf(name, sizeof name, "%06u", i);
        event_tally_add(&tally, text(name), text(""), 0, 1, i, &(struct event_weight){ .weight = 1 });
    }
    event_groups_init(&groups, &tally, TALLY_BY_TEXT);
    assert_int_equal(groups.count, GROUPS);
    for (unsigned i = 0; i < GROUPS; i++) {
        snprintf(name, sizeof name, "%06u", i);
        assert_string_equal(intern_text(&tally.texts, event_group_row(&groups, &groups.rows[i], 0)->text),
                            name);
    }
    event_groups_done(&groups);
    event_tally_done(&tally);
    event_stacks_done(&stacks);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_equal_groups),
        cmocka_unit_test(test_many_equal_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
