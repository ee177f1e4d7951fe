#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "trace/builder.h"
#include "trace/past_mappings.h"

static uint32_t image(struct trace_builder *b, const char *path)
{
    return trace_builder_image(b, span_of(path, __builtin_strlen(path)), IMAGE_ELF, 0, 0, 0);
}

static uint32_t sample(struct trace_builder *b, uint64_t time_ns, const uint64_t *user, size_t count)
{
    return trace_builder_sample(b, &(struct raw_sample){
                                       .time_ns = time_ns,
                                       .weight = 1,
                                       .user = user,
                                       .user_count = count,
                                       .pid = 10,
                                       .tid = 11,
                                       .end = STACK_WHOLE,
                                   });
}

static const struct trace_location *leaf(const struct trace_builder *b, uint32_t stack)
{
    return &b->trace.locations.rows[b->trace.stacks.rows[stack].location];
}

static void test_equal_chains_are_one_stack(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, image(&b, "/bin/a"), 1);
    uint64_t chain[] = { 0x1100, 0x1200, 0x1300 }, other[] = { 0x1180, 0x1200, 0x1300 };
    uint32_t first = sample(&b, 5, chain, 3);
    assert_int_equal(sample(&b, 6, chain, 3), first);
    uint32_t second = sample(&b, 7, other, 3);
    assert_int_not_equal(second, first);
    assert_int_equal(b.trace.stacks.rows[second].parent, b.trace.stacks.rows[first].parent);
    assert_int_equal(b.trace.samples.count, 3);
    assert_false(leaf(&b, first)->is_return);
    assert_true(leaf(&b, b.trace.stacks.rows[first].parent)->is_return);
    trace_builder_done(&b);
}

/* The same address is another location once another file is mapped there. */
static void test_remapped_address(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    uint32_t before = trace_builder_mapping(&b, process, 0x1000, 0x3000, 0, image(&b, "/lib/a.so"), 1);
    uint64_t chain[] = { 0x2100 };
    uint32_t first = sample(&b, 5, chain, 1);
    uint32_t after = trace_builder_mapping(&b, process, 0x2000, 0x1000, 0, image(&b, "/lib/b.so"), 6);
    uint32_t second = sample(&b, 7, chain, 1);
    assert_int_equal(leaf(&b, first)->mapping, before);
    assert_int_equal(leaf(&b, second)->mapping, after);
    assert_int_equal(trace_builder_mapping_at(&b, process, 0x1fff), before);
    assert_int_equal(trace_builder_mapping_at(&b, process, 0x3000), before);
    assert_int_equal(trace_builder_mapping_at(&b, process, 0x4000), 0);
    trace_builder_done(&b);
}

/* A code heap is reported again and again while it grows: that is one mapping. */
static void test_growing_mapping(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    uint32_t heap = image(&b, "[code heap]");
    uint32_t first = trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, heap, 1);
    assert_int_equal(trace_builder_mapping(&b, process, 0x1000, 0x3000, 0, heap, 2), first);
    assert_int_equal(trace_builder_mapping_at(&b, process, 0x3fff), first);
    assert_int_equal(b.trace.mappings.rows[first].end, 0x4000);
    trace_builder_done(&b);
}

static uint32_t code(struct trace_builder *b, uint32_t process, const char *name, uint64_t from_ns,
                     uint64_t to_ns)
{
    uint32_t function = trace_builder_function(
        b, &(struct trace_function){ .name = trace_add_string(&b->trace, name), .kind = CODE_JIT });
    return trace_builder_code(b, &(struct trace_code){ .process = process,
                                                       .function = function,
                                                       .addr = 0x9000,
                                                       .size_bytes = 0x100,
                                                       .from_ns = from_ns,
                                                       .to_ns = to_ns });
}

/* Freed code whose place is used again is named by what lived there when the sample was taken. */
static void test_reused_code(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    uint64_t chain[] = { 0x9080 };
    uint32_t unknown = sample(&b, 2, chain, 1);
    uint32_t first = code(&b, process, "Dyn_1", 3, 0);
    uint32_t in_first = sample(&b, 4, chain, 1);
    assert_int_equal(trace_builder_code_end(&b, process, 0x9000, 5), first);
    uint32_t between = sample(&b, 6, chain, 1);
    uint32_t second = code(&b, process, "Dyn_2", 7, 0);
    uint32_t in_second = sample(&b, 8, chain, 1);
    assert_int_equal(leaf(&b, unknown)->code, 0);
    assert_int_equal(leaf(&b, in_first)->code, first);
    assert_int_equal(leaf(&b, between)->code, 0);
    assert_int_equal(leaf(&b, in_second)->code, second);
    assert_int_equal(b.trace.codes.rows[first].to_ns, 5);
    /* what exists at the end and was told of already is not told twice */
    assert_int_equal(code(&b, process, "Dyn_2", 0, 0), second);
    trace_builder_done(&b);
}

/* Code that replaces other code without a word about its end ends it. */
static void test_overlapping_code(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    uint32_t first = code(&b, process, "A", 3, 0);
    code(&b, process, "B", 9, 0);
    assert_int_equal(b.trace.codes.rows[first].to_ns, 9);
    trace_builder_done(&b);
}

static void test_exec_forgets(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, image(&b, "/bin/a"), 1);
    uint32_t method = code(&b, process, "A", 3, 0);
    trace_builder_process_exec(&b, 10, span_of("b", 1), 4);
    uint32_t after = trace_builder_process(&b, 10);
    assert_int_not_equal(after, process);
    assert_int_equal(b.trace.processes.rows[process].to_ns, 4);
    assert_int_equal(trace_builder_mapping_at(&b, after, 0x1000), 0);
    assert_int_not_equal(trace_builder_mapping_at(&b, process, 0x1000), 0); /* for what still waits */
    assert_int_equal(b.trace.codes.rows[method].to_ns, 4);
    uint64_t chain[] = { 0x9080 };
    assert_int_equal(leaf(&b, sample(&b, 5, chain, 1))->code, 0);
    trace_builder_forget_ended(&b, 5);
    assert_int_equal(trace_builder_mapping_at(&b, process, 0x1000), 0);
    trace_builder_done(&b);
}

/* Samples and events may be older than what the kernel told of mappings, of an exec, or of another process of
 * the same number: each is of its own time. */
static void test_old_sample(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    uint32_t thread = trace_builder_thread(&b, 10, 11, 1);
    uint32_t first = trace_builder_mapping(&b, process, 0x1000, 0x3000, 0, image(&b, "/lib/a.so"), 2);
    uint32_t second = trace_builder_mapping(&b, process, 0x2000, 0x1000, 0, image(&b, "/lib/b.so"), 6);
    uint32_t third = trace_builder_mapping(&b, process, 0x2000, 0x1000, 0, image(&b, "/lib/c.so"), 9);
    uint32_t method = code(&b, process, "A", 3, 0);
    trace_builder_process_exec(&b, 10, span_of("b", 1), 12);
    uint32_t after = trace_builder_process(&b, 10);
    uint64_t chain[] = { 0x2100, 0x9080 };
    const uint32_t then[] = { first, second, second, third, third };
    static const uint64_t times[] = { 5, 6, 8, 9, 11 };
    for (size_t round = 0; round < 2; round++) /* what is remembered of one is not another's */
        for (size_t i = 0; i < ARRAY_LEN(times); i++) {
            struct raw_sample s = { .time_ns = times[i], .user = chain, .user_count = 2, .thread = thread };
            uint32_t stack = trace_builder_sample(&b, &s);
            assert_int_equal(leaf(&b, stack)->mapping, then[i]);
            assert_int_equal(leaf(&b, b.trace.stacks.rows[stack].parent)->code, method);
            stack = trace_builder_stack(&b, process, chain, 1, true, times[i], STACK_WHOLE);
            assert_int_equal(leaf(&b, stack)->mapping, then[i]);
        }
    uint32_t stack = sample(&b, 13, chain, 2); /* of who has the number now */
    assert_int_equal(leaf(&b, stack)->process, after);
    assert_int_equal(leaf(&b, stack)->mapping, 0);
    trace_builder_done(&b);
}

/* However often a mapping is replaced, little is kept of that, and it is the newest. */
static void test_past_is_bounded(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1), before = 0;
    uint32_t images[] = { image(&b, "/lib/a.so"), image(&b, "/lib/b.so") };
    for (uint32_t i = 1; i <= 5 * PAST_MAPPINGS_MAX; i++) {
        uint32_t now = trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, images[i % 2], i);
        assert_int_equal(trace_builder_mapping_then(&b, process, 0x1800, i), now);
        if (before)
            assert_int_equal(trace_builder_mapping_then(&b, process, 0x1800, i - 1), before);
        before = now;
    }
    assert_true(b.states[process].past->count <= PAST_MAPPINGS_MAX);
    trace_builder_done(&b);
}

/* What was mapped in processes that ended is given back after a time; what is said of them stays. */
static void test_ended_are_forgotten(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t ids[8];
    trace_builder_forget_ended(&b, 1000); /* nobody has ended yet */
    for (uint32_t i = 0; i < ARRAY_LEN(ids); i++) {
        ids[i] = trace_builder_process_start(&b, 10 + i, 1);
        trace_builder_mapping(&b, ids[i], 0x1000, 0x1000, 0, image(&b, "/bin/a"), 1);
    }
    for (uint32_t i = 0; i + 1 < ARRAY_LEN(ids); i++)
        trace_builder_process_exit(&b, 10 + i, 100 + i);
    for (uint64_t before_ns = 100; before_ns < 120; before_ns += 3) {
        trace_builder_forget_ended(&b, before_ns);
        for (uint32_t i = 0; i < ARRAY_LEN(ids); i++) {
            bool kept = i + 1 == ARRAY_LEN(ids) || 100 + i >= before_ns;
            assert_int_equal(trace_builder_mapping_at(&b, ids[i], 0x1000) != 0, kept);
        }
    }
    assert_int_equal(b.trace.mappings.count, 1 + ARRAY_LEN(ids));
    trace_builder_process_exit(&b, 10 + ARRAY_LEN(ids) - 1, 200);
    trace_builder_forget_ended(&b, 201);
    assert_int_equal(trace_builder_mapping_at(&b, ids[ARRAY_LEN(ids) - 1], 0x1000), 0);
    trace_builder_done(&b);
}

static void test_fork_shares_and_pids_return(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t parent = trace_builder_process_start(&b, 10, 1);
    uint32_t mapping = trace_builder_mapping(&b, parent, 0x1000, 0x1000, 0, image(&b, "/bin/a"), 1);
    uint32_t child = trace_builder_process_fork(&b, 10, 20, 2);
    assert_int_equal(trace_builder_mapping_at(&b, child, 0x1000), mapping);
    trace_builder_process_exit(&b, 20, 3);
    uint32_t again = trace_builder_process_fork(&b, 10, 20, 4);
    assert_int_not_equal(again, child);
    assert_int_equal(trace_builder_process(&b, 20), again);
    uint32_t thread = trace_builder_thread(&b, 10, 11, 5);
    trace_builder_thread_exit(&b, 10, 11, 6);
    assert_int_equal(trace_builder_thread(&b, 10, 11, 7), thread);
    trace_builder_thread_start(&b, 10, 11, 8);
    assert_int_not_equal(trace_builder_thread(&b, 10, 11, 9), thread);
    trace_builder_done(&b);
}

static void test_deep_stack_is_cut_at_its_root(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint64_t chain[TRACE_STACK_DEPTH_MAX + 10];
    for (size_t i = 0; i < ARRAY_LEN(chain); i++)
        chain[i] = 0x1000 + i;
    uint32_t stack = sample(&b, 1, chain, ARRAY_LEN(chain));
    assert_int_equal(trace_stack_end(&b.trace, stack), STACK_TRUNCATED);
    assert_int_equal(trace_builder_stack_end(&b, stack), STACK_TRUNCATED);
    assert_int_equal(leaf(&b, stack)->addr, 0x1000);
    trace_builder_done(&b);
}

static size_t believe_one(void *user, uint32_t process, const struct raw_sample *s, enum stack_end *out_end)
{
    (void)process;
    (void)s;
    ++*(int *)user;
    *out_end = STACK_BROKEN;
    return 1;
}

static void test_judged_once(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    int asked = 0;
    uint64_t chain[] = { 0x1000, 0x2000 };
    struct raw_sample s = {
        .user = chain, .user_count = 2, .pid = 1, .tid = 1, .judge = believe_one, .judge_user = &asked
    };
    uint32_t stack = trace_builder_sample(&b, &s);
    assert_int_equal(trace_builder_sample(&b, &s), stack);
    assert_int_equal(asked, 1);
    assert_int_equal(b.trace.stacks.rows[stack].parent, STACK_BROKEN);
    trace_builder_done(&b);
}

static uint32_t sample_below(const uint64_t *kernel, size_t kernel_count, const uint64_t *user,
                             size_t user_count, struct trace_builder *b)
{
    return trace_builder_sample(b, &(struct raw_sample){ .time_ns = 5,
                                                         .kernel = kernel,
                                                         .kernel_count = kernel_count,
                                                         .user = user,
                                                         .user_count = user_count,
                                                         .pid = 10,
                                                         .tid = 11,
                                                         .end = STACK_WHOLE,
                                                         .by_callers = true });
}

/* Callers are remembered apart from the leaf: where it is decides whether they go on at their address. */
static void test_same_callers(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, image(&b, "/bin/a"), 1);
    static const uint64_t kernel[] = { UINT64_MAX - 9, UINT64_MAX - 8 };
    static const uint64_t user[] = { 0x1100, 0x1200, 0x1300, 0x1400, 0x1500, 0x1600, 0x1700 };
    uint32_t whole = sample_below(NULL, 0, user, 7, &b), callers = b.trace.stacks.rows[whole].parent;
    for (unsigned i = 0; i < 40; i++) { /* other leaves, and others of the first frames */
        uint64_t other[7];
        memcpy(other, user, sizeof user);
        other[0] += i;
        other[2] += i / 8;
        uint32_t stack = sample_below(NULL, 0, other, 7, &b), up = stack;
        assert_int_equal(leaf(&b, stack)->addr, other[0]);
        assert_false(leaf(&b, stack)->is_return);
        for (unsigned frame = 1; frame < 7; frame++) {
            up = b.trace.stacks.rows[up].parent;
            assert_int_equal(leaf(&b, up)->addr, other[frame]);
            assert_true(leaf(&b, up)->is_return);
        }
        assert_int_equal(b.trace.stacks.rows[up].parent, STACK_WHOLE);
        assert_true(i >= 8 || b.trace.stacks.rows[stack].parent == callers);
    }
    /* what was behind a call below the leaf is where the kernel was entered */
    for (size_t count = 1; count <= 2; count++) {
        uint32_t stack = sample_below(kernel, count, user + 1, 6, &b);
        for (size_t i = 0; i < count; i++)
            stack = b.trace.stacks.rows[stack].parent;
        assert_int_equal(leaf(&b, stack)->addr, user[1]);
        assert_false(leaf(&b, stack)->is_return);
        assert_int_not_equal(stack, callers);
    }
    trace_builder_done(&b);
}

static size_t believe_code(void *user, uint32_t process, const struct raw_sample *s, enum stack_end *out_end)
{
    size_t count = 0;
    while (count < s->user_count && trace_builder_mapping_at(user, process, s->user[count]))
        count++;
    *out_end = count == s->user_count ? STACK_WHOLE : STACK_BROKEN;
    return count ? count : 1;
}

/* A frame near the leaf that is no code ends the stack, whatever is known of those behind it. */
static void test_callers_behind_no_code(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, image(&b, "/bin/a"), 1);
    uint64_t chain[] = { 0x1100, 0x1200, 0x1300, 0x1400, 0x1500, 0x1600 };
    struct raw_sample s = { .user = chain,
                            .user_count = 6,
                            .pid = 10,
                            .tid = 11,
                            .judge = believe_code,
                            .judge_user = &b,
                            .by_callers = true };
    for (size_t bad = 0; bad < 6; bad++) {
        struct raw_sample good = s, one = s;
        chain[bad] = 0x1180;
        assert_int_equal(trace_builder_stack_end(&b, trace_builder_sample(&b, &good)), STACK_WHOLE);
        chain[bad] = 0x9000;
        uint32_t stack = trace_builder_sample(&b, &one);
        assert_int_equal(trace_builder_stack_end(&b, stack), STACK_BROKEN);
        size_t depth = 0;
        for (; stack >= STACK_ROOTS; stack = b.trace.stacks.rows[stack].parent)
            depth++;
        assert_int_equal(depth, bad ? bad : 1);
        chain[bad] = 0x1100 + 0x100 * bad;
    }
    trace_builder_done(&b);
}

/* Code at a place that no stack had does not change what stacks are; at one that had it does. */
static void test_code_where_nothing_was(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    trace_builder_mapping(&b, process, 0x1000, 0x10000, 0, image(&b, "/bin/a"), 1);
    uint64_t chain[] = { 0x1100, 0x1200 };
    uint32_t before = sample(&b, 2, chain, 2);
    uint32_t space = b.states[process].space;
    struct trace_code far = { .process = process, .addr = 0x9000, .size_bytes = 0x80, .from_ns = 3 };
    struct trace_code near = { .process = process, .addr = 0x11f0, .size_bytes = 0x80, .from_ns = 5 };
    trace_builder_code(&b, &far);
    assert_int_equal(b.states[process].space, space);
    assert_int_equal(sample(&b, 4, chain, 2), before);
    uint32_t code = trace_builder_code(&b, &near);
    uint32_t after = sample(&b, 6, chain, 2);
    assert_int_not_equal(after, before);
    assert_int_equal(leaf(&b, b.trace.stacks.rows[after].parent)->code, code);
    trace_builder_code_end(&b, process, 0x11f0, 7);
    assert_int_equal(leaf(&b, b.trace.stacks.rows[sample(&b, 8, chain, 2)].parent)->code, 0);
    trace_builder_done(&b);
}

/* An event's stack is found as a sample's is, but its leaf is the place behind a call. */
static void test_stack_without_sample(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    uint32_t first = trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, image(&b, "/bin/a"), 1);
    trace_builder_mapping(&b, process, 0x2000, 0x1000, 0, image(&b, "/bin/b"), 1);
    uint64_t chain[] = { 0x2000, 0x1200, 0x1300 };
    uint32_t event = trace_builder_stack(&b, process, chain, 3, false, 5, STACK_WHOLE);
    assert_int_equal(trace_builder_stack(&b, process, chain, 3, false, 6, STACK_WHOLE), event);
    assert_true(leaf(&b, event)->is_return);
    assert_int_equal(leaf(&b, event)->mapping, first); /* the call is the last thing there */
    uint32_t exact = trace_builder_stack(&b, process, chain, 3, true, 7, STACK_WHOLE);
    assert_int_not_equal(exact, event);
    assert_false(leaf(&b, exact)->is_return);
    assert_int_equal(b.trace.stacks.rows[exact].parent, b.trace.stacks.rows[event].parent);
    assert_int_equal(sample(&b, 8, chain, 3), exact);
    uint32_t broken = trace_builder_stack(&b, process, chain, 3, false, 9, STACK_BROKEN);
    assert_int_equal(trace_builder_stack_end(&b, broken), STACK_BROKEN);
    assert_int_equal(trace_builder_stack(&b, process, NULL, 0, false, 9, STACK_WHOLE), STACK_WHOLE);
    assert_int_equal(b.trace.samples.count, 1);
    trace_builder_done(&b);
}

static void test_fact_pairs(void **state)
{
    (void)state;
    struct span name;
    uint64_t value;
    const char *rest = "leaf 10  eh_frame 18446744073709551615 odd";
    assert_true(trace_fact_pair(&rest, &name, &value));
    assert_true(span_equals(name, span_of("leaf", 4)) && value == 10);
    assert_true(trace_fact_pair(&rest, &name, &value));
    assert_true(span_equals(name, span_of("eh_frame", 8)) && value == UINT64_MAX);
    assert_false(trace_fact_pair(&rest, &name, &value));
    rest = "";
    assert_false(trace_fact_pair(&rest, &name, &value));
}

static void test_number_facts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        uint64_t number;
    } cases[] = { { "0", true, 0 },    { "18446744073709551615", true, UINT64_MAX },
                  { "", false, 0 },    { "18446744073709551616", false, 0 },
                  { "-1", false, 0 },  { " 1", false, 0 },
                  { "12a", false, 0 }, { "x", false, 0 } };
    struct trace_builder b;
    trace_builder_init(&b, 64);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t number = 7;
        trace_set_fact(&b.trace, "key", cases[i].text);
        assert_int_equal(trace_fact_number(&b.trace, "key", &number), cases[i].ok);
        assert_true(number == (cases[i].ok ? cases[i].number : 7));
    }
    trace_set_fact_number(&b.trace, "key", UINT64_MAX);
    assert_string_equal(trace_fact_value(&b.trace, "key"), "18446744073709551615");
    uint64_t number;
    assert_false(trace_fact_number(&b.trace, "no key", &number));
    trace_builder_done(&b);
}

enum { CHAIN_DEPTH = 24 };

/* A chain by its number, of which few frames differ from those of others. */
static struct raw_sample sample_of(uint64_t *chain, unsigned number)
{
    uint32_t random = number * 2654435761u;
    size_t count = CHAIN_DEPTH - number % 7;
    for (size_t i = count; i-- > 0; random = random * 1664525 + 1013904223)
        chain[i] = 0x1000 + (count - i) * 0x10 + (random >> 28 == 0 ? 4 : 0);
    return (struct raw_sample){
        .time_ns = number,
        .weight = 1,
        .user = chain,
        .user_count = count,
        .chain = span_of(chain, count * sizeof *chain),
        .pid = 10,
        .tid = 11,
        .end = STACK_WHOLE,
    };
}

static void check_same(const struct trace *a, const struct trace *b)
{
    assert_int_equal(a->samples.count, b->samples.count);
    assert_memory_equal(a->samples.stack, b->samples.stack, a->samples.count * sizeof *a->samples.stack);
    assert_memory_equal(a->samples.time_ns, b->samples.time_ns,
                        a->samples.count * sizeof *a->samples.time_ns);
    assert_int_equal(a->stacks.count, b->stacks.count);
    assert_memory_equal(a->stacks.rows, b->stacks.rows, a->stacks.count * sizeof *a->stacks.rows);
    assert_int_equal(a->locations.count, b->locations.count);
}

/* Samples added together are what they are one by one: with equal chains among them, new and known ones. */
static void test_samples_together(void **state)
{
    (void)state;
    enum { ROUNDS = 200, CHAINS = 300 /* fewer than there are: some are forgotten on the way */ };
    struct trace_builder alone, together;
    trace_builder_init(&alone, CHAINS);
    trace_builder_init(&together, CHAINS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t chains[STACK_PATHS_MAX][CHAIN_DEPTH];
        struct raw_sample raws[STACK_PATHS_MAX];
        unsigned count = 1 + round % STACK_PATHS_MAX;
        for (unsigned i = 0; i < count; i++) {
            raws[i] = sample_of(chains[i], (round * STACK_PATHS_MAX + i) / 3);
            struct raw_sample one = raws[i];
            trace_builder_sample(&alone, &one);
            trace_builder_sample_expect(&together, &raws[i]);
        }
        trace_builder_samples(&together, raws, count);
    }
    const struct trace *t = &alone.trace;
    check_same(t, &together.trace);
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++)
        for (size_t j = STACK_ROOTS; j < i; j++) /* each once */
            assert_memory_not_equal(&t->stacks.rows[i], &t->stacks.rows[j], sizeof *t->stacks.rows);
    trace_builder_done(&alone);
    trace_builder_done(&together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fact_pairs),
        cmocka_unit_test(test_equal_chains_are_one_stack),
        cmocka_unit_test(test_same_callers),
        cmocka_unit_test(test_callers_behind_no_code),
        cmocka_unit_test(test_code_where_nothing_was),
        cmocka_unit_test(test_number_facts),
        cmocka_unit_test(test_remapped_address),
        cmocka_unit_test(test_growing_mapping),
        cmocka_unit_test(test_reused_code),
        cmocka_unit_test(test_overlapping_code),
        cmocka_unit_test(test_exec_forgets),
        cmocka_unit_test(test_old_sample),
        cmocka_unit_test(test_past_is_bounded),
        cmocka_unit_test(test_ended_are_forgotten),
        cmocka_unit_test(test_fork_shares_and_pids_return),
        cmocka_unit_test(test_deep_stack_is_cut_at_its_root),
        cmocka_unit_test(test_judged_once),
        cmocka_unit_test(test_samples_together),
        cmocka_unit_test(test_stack_without_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
