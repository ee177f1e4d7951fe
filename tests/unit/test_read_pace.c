#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "collect/read_pace.h"
#include "trace/builder.h"

enum { HEAP = 0x7f0000000000, LIBRARY = 0x7f1000000000, MAPPED_BYTES = 0x10000, OFTEN = 1000 };

#define SECOND_NS UINT64_C(1000000000)
#define BEGAN_NS  (UINT64_C(100) * SECOND_NS)

struct fixture {
    struct trace_builder b;
    uint32_t process;
    struct read_pace pace;
};

static void map(struct fixture *f, uint64_t addr, const char *path, size_t length, enum image_kind kind)
{
    uint32_t image = trace_builder_image(&f->b, span_of(path, length), kind, 0, 0, 0);
    trace_builder_mapping(&f->b, f->process, addr, MAPPED_BYTES, 0, image, 1);
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){ 0 };
    *state = &fixture;
    trace_builder_init(&fixture.b, 64);
    fixture.process = trace_builder_process_start(&fixture.b, 7, 1);
    map(&fixture, HEAP, "/memfd:doublemapper (deleted)", 29, IMAGE_JIT);
    map(&fixture, LIBRARY, "/lib/libc.so.6", 14, IMAGE_ELF);
    read_pace_begin(&fixture.pace, BEGAN_NS);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    trace_builder_done(&f->b);
    return 0;
}

static void add_samples(struct fixture *f, uint64_t leaf, uint64_t caller, size_t count)
{
    uint64_t addrs[] = { leaf, caller };
    for (size_t i = 0; i < count; i++) {
        uint32_t stack = trace_builder_stack(&f->b, f->process, addrs, 2, true, 5, STACK_WHOLE);
        read_pace_sample(&f->pace, &f->b.trace, stack);
    }
}

static void read_at(struct fixture *f, uint64_t after_s)
{
    read_pace_read(&f->pace, &f->b.trace, BEGAN_NS + after_s * SECOND_NS);
}

static bool is_due(const struct fixture *f, uint64_t after_s)
{
    return read_pace_is_due(&f->pace, &f->b.trace, BEGAN_NS + after_s * SECOND_NS);
}

static void nothing_new_is_never_due(void **state)
{
    struct fixture *f = *state;
    add_samples(f, HEAP + 0x100, LIBRARY + 0x100, 1);
    assert_true(is_due(f, 0));
    read_at(f, 0);
    add_samples(f, HEAP + 0x100, LIBRARY + 0x100, OFTEN);
    assert_false(is_due(f, 1000));
    assert_int_equal(f->pace.samples, OFTEN + 1);
}

static void what_many_samples_lead_to_is_read_soon(void **state)
{
    struct fixture *f = *state;
    add_samples(f, HEAP + 0x100, LIBRARY + 0x100, OFTEN);
    read_at(f, 6);
    add_samples(f, HEAP + 0x200, LIBRARY + 0x100, OFTEN / 100);
    assert_int_equal(f->pace.unread, OFTEN / 100);
    assert_false(is_due(f, 7));
    assert_true(is_due(f, 8)); /* a third of its age later */
    read_at(f, 600);
    add_samples(f, LIBRARY + 0x200, HEAP + 0x300, OFTEN);
    assert_false(is_due(f, 603));
    assert_true(is_due(f, 604)); /* the longest */
}

static void what_few_samples_lead_to_waits(void **state)
{
    struct fixture *f = *state;
    add_samples(f, HEAP + 0x100, LIBRARY + 0x100, OFTEN);
    read_at(f, 6);
    add_samples(f, HEAP + 0x200, LIBRARY + 0x100, 1);
    assert_false(is_due(f, 11));
    assert_true(is_due(f, 12)); /* as long as it is old */
    read_at(f, 600);
    add_samples(f, HEAP + 0x300, LIBRARY + 0x100, 1);
    assert_false(is_due(f, 659));
    assert_true(is_due(f, 660)); /* the longest */
}

static void what_was_read_or_is_in_a_file_does_not_count(void **state)
{
    struct fixture *f = *state;
    add_samples(f, HEAP + 0x100, LIBRARY + 0x100, OFTEN);
    read_at(f, 6);
    add_samples(f, LIBRARY + 0x200, LIBRARY + 0x300, OFTEN);
    add_samples(f, HEAP + 0x100, LIBRARY + 0x300, OFTEN); /* the leaf was read, below another caller */
    assert_int_equal(f->pace.unread, 0);
}

static void code_that_became_known_since_counts(void **state)
{
    struct fixture *f = *state;
    struct trace_code code = {
        .process = f->process, .addr = HEAP + 0x800, .size_bytes = 0x100, .from_ns = CODE_FROM_EVER
    };
    trace_builder_code(&f->b, &code);
    read_at(f, 6);
    add_samples(f, HEAP + 0x810, LIBRARY + 0x100, OFTEN);
    assert_int_equal(f->pace.unread, 0); /* it was there: only more places of it */
    code.addr = HEAP + 0xa00;
    trace_builder_code(&f->b, &code);
    add_samples(f, HEAP + 0xa10, LIBRARY + 0x100, 3);
    assert_int_equal(f->pace.unread, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_new_is_never_due, setup, teardown),
        cmocka_unit_test_setup_teardown(what_many_samples_lead_to_is_read_soon, setup, teardown),
        cmocka_unit_test_setup_teardown(what_few_samples_lead_to_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_read_or_is_in_a_file_does_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(code_that_became_known_since_counts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
