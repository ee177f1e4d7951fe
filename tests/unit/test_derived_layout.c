#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "assembly_fixture.h"
#include "base/memory_snapshot.h"
#include "clr/code_walk.h"
#include "clr/derived_layout.h"
#include "clr/layout_poll.h"
#include "runtime_fixture.h"

enum { TYPES = 60, METHODS_EACH = 200, PAGES_BYTES = 64 << 20 };

static struct runtime_fixture fixture;
static struct buffer assembly, snapshot_bytes;

static int make_assembly(void **state)
{
    (void)state;
    buffer_init(&assembly, 1 << 20);
    buffer_init(&snapshot_bytes, 2 << 20);
    assembly_fixture_write(TYPES, METHODS_EACH, &assembly);
    return 0;
}

static int free_assembly(void **state)
{
    (void)state;
    buffer_done(&assembly);
    buffer_done(&snapshot_bytes);
    return 0;
}

/* A version that nobody has seen: what follows has moved. */
static struct runtime_layout future(void)
{
    struct runtime_layout l = runtime_layouts[0];
    l.name = "none";
    l.remainder_bits = 13;
    l.header.method = 0x10;
    l.header.unwind_count = 0x2c;
    l.header.unwinds = 0x30;
    l.generic.count += 8;
    l.generic.arguments += 8;
    l.dynamic.signature += 8;
    l.dynamic.signature_size += 8;
    l.dynamic.flags += 8;
    l.dynamic.name += 8;
    l.dynamic.resolver += 8;
    l.table.module = 0x20;
    l.table.type_row = 0x04;
    l.module.file = 0x1c8;
    l.image.flat = 0x90;
    l.image.loaded = 0x98;
    return l;
}

static void open_snapshot(struct memory_snapshot *snapshot)
{
    struct error err;
    buffer_clear(&snapshot_bytes);
    runtime_fixture_write(&fixture, &snapshot_bytes);
    if (!memory_snapshot_open(buffer_span(&snapshot_bytes), snapshot, &err))
        fail_msg("%s", err.what);
}

/* The layout of the fixture as it is now. */
static bool derive(struct runtime_layout *out, struct error *err)
{
    struct memory_snapshot snapshot;
    struct memory_pages pages;
    struct runtime_root root;
    open_snapshot(&snapshot);
    memory_pages_init(&pages, &snapshot.memory, PAGES_BYTES);
    bool ok = runtime_root_find(&pages, &root, err);
    if (ok) {
        ok = derived_layout_find(&pages, &root, NULL, out, err);
        runtime_root_done(&root);
    }
    memory_pages_done(&pages);
    memory_snapshot_done(&snapshot);
    return ok;
}

#define SAME(member) assert_int_equal(derived.member, layout->member)

static void check_derived(const struct runtime_layout *layout)
{
    struct runtime_layout derived;
    struct error err;
    runtime_fixture_build(&fixture, layout, buffer_span(&assembly), true);
    if (!derive(&derived, &err))
        fail_msg("%s: %s", layout->name, err.what);
    SAME(list);
    SAME(constant);
    SAME(remainder_bits);
    SAME(type_row_bytes);
    SAME(header.method);
    SAME(header.unwind_count);
    SAME(header.unwinds);
    SAME(generic.count);
    SAME(generic.arguments);
    SAME(dynamic.signature);
    SAME(dynamic.signature_size);
    SAME(dynamic.flags);
    SAME(dynamic.name);
    SAME(dynamic.resolver);
    SAME(dynamic.of_program);
    SAME(dynamic.of_runtime);
    SAME(table.module);
    SAME(table.type_row);
    SAME(module.file);
    SAME(image.flat);
    SAME(image.loaded);
    /* nothing speaks for these in what was made up */
    assert_int_equal(derived.module.emitted, LAYOUT_NONE);
    assert_int_equal(derived.version.tier, LAYOUT_NONE);
}

static void test_measured_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < runtime_layout_count; i++) {
        struct runtime_layout layout = runtime_layouts[i];
        layout.constant = false; /* none of the made-up methods is so large that its map tells */
        check_derived(&layout);
    }
}

static void test_unseen_layout(void **state)
{
    (void)state;
    struct runtime_layout layout = future();
    layout.constant = false;
    check_derived(&layout);
}

struct seen {
    unsigned methods, named;
};

static bool note(void *user, const struct found_method *m)
{
    struct seen *seen = user;
    seen->methods += m->kind == FOUND_METHOD;
    seen->named += m->generic ? strncmp(m->name, "T::M[T", 6) == 0 : strcmp(m->name, "T::M()") == 0;
    return true;
}

/* The walk takes the derived layout where no measured one fits, and names all by it. */
static void test_walk_by_derived(void **state)
{
    (void)state;
    const struct runtime_layout layout = future();
    struct memory_snapshot snapshot;
    struct code_walk *walk;
    struct error err;
    struct seen seen = { 0 };
    runtime_fixture_build(&fixture, &layout, buffer_span(&assembly), true);
    open_snapshot(&snapshot);
    if (!code_walk_open(&snapshot.memory, NULL, &walk, &err))
        fail_msg("%s", err.what);
    assert_int_equal(code_walk_report(walk)->way, LAYOUT_DERIVED);
    assert_int_equal(code_walk_report(walk)->checked, code_walk_report(walk)->agreed);
    assert_true(code_walk_list(walk, WALK_ALL, note, &seen));
    assert_int_equal(seen.methods, FIXTURE_BODIES);
    assert_int_equal(seen.named, FIXTURE_BODIES);
    code_walk_close(walk);
    memory_snapshot_done(&snapshot);
}

static void expect_refused(const char *why)
{
    struct runtime_layout derived = { .major = 77 };
    struct error err;
    assert_false(derive(&derived, &err));
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    if (!strstr(err.what, why))
        fail_msg("'%s' does not say '%s'", err.what, why);
    assert_int_equal(derived.major, 77);
}

/* What only some of the process agrees with is no layout. */
static void test_disagreement_is_refused(void **state)
{
    (void)state;
    const struct runtime_layout *l = &runtime_layouts[0];
    runtime_fixture_build(&fixture, l, buffer_span(&assembly), true);
    for (uint32_t i = 0; i < fixture.method_count; i += 20) /* one in twenty is another's */
        runtime_fixture_put(&fixture, fixture.methods[i] - l->chunk.size + l->chunk.range, 2, 2);
    expect_refused("agrees with the metadata");

    runtime_fixture_build(&fixture, l, buffer_span(&assembly), true);
    for (size_t row = 0; row < 64; row++)
        if (fixture.table[row])
            runtime_fixture_put(&fixture, fixture.table[row] + l->table.module, 0, 8);
    expect_refused("the files of their modules");

    runtime_fixture_build(&fixture, l, buffer_span(&assembly), true);
    for (uint32_t i = 0; i < fixture.method_count; i++)
        runtime_fixture_put(&fixture, fixture.methods[i] - l->chunk.size + l->chunk.table, 0, 8);
    expect_refused("leads to methods");
}

/* A small assembly: each width of a row would do, so none is taken. */
static void test_too_little_to_tell(void **state)
{
    (void)state;
    struct buffer small;
    buffer_init(&small, 1 << 20);
    assembly_fixture_write(20, 10, &small);
    runtime_fixture_build(&fixture, &runtime_layouts[0], buffer_span(&small), true);
    for (uint32_t i = 0; i < fixture.method_count; i++)
        runtime_fixture_put(&fixture, fixture.methods[i] + 1, 0, 1);
    expect_refused("agrees with the metadata");
    buffer_done(&small);
}

/* Memory that ends early is refused, or its layout is right. */
static void test_cut(void **state)
{
    (void)state;
    runtime_fixture_build(&fixture, &runtime_layouts[0], buffer_span(&assembly), true);
    buffer_clear(&snapshot_bytes);
    runtime_fixture_write(&fixture, &snapshot_bytes);
    for (size_t keep = 0; keep < 1200; keep += 61) {
        struct memory_snapshot snapshot;
        struct memory_pages pages;
        struct runtime_root root;
        struct runtime_layout derived;
        struct error err;
        assert_true(memory_snapshot_open(buffer_span(&snapshot_bytes), &snapshot, &err));
        if (keep < snapshot.run_count)
            snapshot.run_count = keep;
        memory_pages_init(&pages, &snapshot.memory, PAGES_BYTES);
        if (runtime_root_find(&pages, &root, &err)) {
            if (derived_layout_find(&pages, &root, NULL, &derived, &err))
                assert_int_equal(derived.remainder_bits, runtime_layouts[0].remainder_bits);
            runtime_root_done(&root);
        }
        memory_pages_done(&pages);
        memory_snapshot_done(&snapshot);
    }
}

static void test_poll(void **state)
{
    (void)state;
    struct layout_poll poll = { .asked = 100, .votes = { [3] = 100, [7] = 90 } };
    size_t place = 1;
    assert_true(layout_poll_decide(&poll, 8, 99, &place));
    assert_int_equal(place, 3);
    poll.votes[7] = 91; /* too close */
    assert_false(layout_poll_decide(&poll, 8, 99, &place));
    poll = (struct layout_poll){ .asked = 100, .votes = { [3] = 98 } };
    assert_false(layout_poll_decide(&poll, 8, 99, &place));
    poll = (struct layout_poll){ .asked = 7, .votes = { [3] = 7 } };
    assert_false(layout_poll_decide(&poll, 8, 99, &place));
    poll = (struct layout_poll){ 0 };
    assert_false(layout_poll_decide(&poll, 0, 0, &place));
    assert_int_equal(place, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_layouts),
        cmocka_unit_test(test_unseen_layout),
        cmocka_unit_test(test_walk_by_derived),
        cmocka_unit_test(test_disagreement_is_refused),
        cmocka_unit_test(test_too_little_to_tell),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_poll),
    };
    return cmocka_run_group_tests(tests, make_assembly, free_assembly);
}
