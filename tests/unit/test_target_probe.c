#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/target_probe.h"

static void look_and_find(struct target *t)
{
    t->command_line = mem_copy_string("dotnet App.dll");
    t->entry_assembly = mem_copy_string("");
    t->runtime = RUNTIME_CORECLR;
    t->version = (struct runtime_version){ "10.0.12" };
    t->single_file = true;
    t->socket_owner = 4711;
    t->some_addr = UINT64_MAX;
}

static void look_for_ever(struct target *t)
{
    (void)t;
    for (;;)
        pause();
}

static void look_and_die(struct target *t)
{
    (void)t;
    _exit(1);
}

/* A descriptor of ours that stays open in a helper that hangs is a counter or a ring that never goes away. */
static void look_at_descriptors(struct target *t)
{
    t->runtime =
        fcntl(t->pidfd, F_GETFD) < 0 && fcntl(STDERR_FILENO, F_GETFD) < 0 ? RUNTIME_CORECLR : RUNTIME_NONE;
}

static struct target some_target(void)
{
    return (struct target){ .pid = 7, .pidfd = -1, .start_ticks = 9, .name = mem_copy_string("App") };
}

static bool probe(struct target *t, target_look_fn *look, unsigned timeout_ms, struct error *err)
{
    struct target_probe probe;
    return target_probe_begin(t, look, timeout_ms, &probe, err) && target_probe_finish(&probe, t, err);
}

static void test_answer(void **state)
{
    (void)state;
    struct target t = some_target();
    assert_true(probe(&t, look_and_find, 5000, NULL));
    assert_int_equal(t.pid, 7);
    assert_int_equal(t.start_ticks, 9);
    assert_string_equal(t.name, "App");
    assert_string_equal(t.command_line, "dotnet App.dll");
    assert_string_equal(t.entry_assembly, "");
    assert_null(t.socket);
    assert_int_equal(t.runtime, RUNTIME_CORECLR);
    assert_string_equal(t.version.text, "10.0.12");
    assert_true(t.single_file && !t.sdk_tool && !t.maps_denied && !t.diagnostics_off);
    assert_int_equal(t.socket_owner, 4711);
    assert_true(t.some_addr == UINT64_MAX);
    target_done(&t);
}

static void test_descriptors(void **state)
{
    (void)state;
    struct target t = some_target();
    t.pidfd = open("/", O_PATH | O_CLOEXEC);
    assert_true(t.pidfd >= 0);
    assert_true(probe(&t, look_at_descriptors, 5000, NULL));
    assert_int_equal(t.runtime, RUNTIME_CORECLR);
    target_done(&t);
}

static void test_no_answer(void **state)
{
    (void)state;
    struct target t = some_target();
    struct error err = { 0 };
    uint64_t start_ns = clock_monotonic_ns();
    assert_false(probe(&t, look_for_ever, 100, &err));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
    assert_true(clock_monotonic_ns() - start_ns < 5000000000u);
    assert_int_equal(err.kind, ERROR_TARGET);
    assert_string_equal(t.name, "App");
    assert_false(probe(&t, look_and_die, 5000, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    assert_string_equal(t.name, "App");
    target_done(&t);
}

static void test_drop(void **state)
{
    (void)state;
    struct target t = some_target();
    struct target_probe probe;
    uint64_t start_ns = clock_monotonic_ns();
    assert_true(target_probe_begin(&t, look_for_ever, 60000, &probe, NULL));
    target_probe_drop(&probe);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_true(clock_monotonic_ns() - start_ns < 5000000000u);
    target_done(&t);
}

static void test_cut_answer(void **state)
{
    (void)state;
    struct target t = some_target();
    struct buffer packed;
    look_and_find(&t);
    buffer_init(&packed, 4096);
    target_pack(&t, &packed);
    for (size_t size = 0; size <= packed.size; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, packed.data, size);
        struct target got = some_target();
        assert_int_equal(target_unpack(span_of(copy, size), &got, NULL), size == packed.size);
        assert_string_equal(got.name, "App");
        target_done(&got);
        free(copy);
    }
    buffer_done(&packed);
    target_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer), cmocka_unit_test(test_descriptors), cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_drop),   cmocka_unit_test(test_cut_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
