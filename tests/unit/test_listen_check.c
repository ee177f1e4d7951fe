#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/listen_check.h"
#include "trace/builder.h"

static uint32_t start(struct trace_builder *b, uint32_t pid, const char *path)
{
    uint32_t process = trace_builder_process_start(b, pid, pid);
    uint32_t image = trace_builder_image(b, span_of(path, strlen(path)), IMAGE_ELF, 0, 0, 0);
    trace_builder_mapping(b, process, 0x1000, 0x1000, 0, image, pid);
    return process;
}

static void subscribe(struct trace_builder *b, uint32_t process)
{
    uint32_t id = trace_push(&b->trace.subscriptions);
    b->trace.subscriptions.rows[id] = (struct trace_subscription){ .process = process };
}

static void test_missed(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 16);
    assert_int_equal(listen_check_missed(&b.trace), 0);
    uint32_t heard = start(&b, 1, "/opt/app/libcoreclr.so");
    subscribe(&b, heard);
    start(&b, 2, "/usr/bin/libcoreclr.so.txt");
    trace_builder_process_fork(&b, 1, 3, 3); /* has its parent's memory until it becomes another program */
    assert_int_equal(listen_check_missed(&b.trace), 0);

    start(&b, 4, "/opt/app/libcoreclr.so");
    assert_int_equal(listen_check_missed(&b.trace), 1);
    uint32_t single_file = start(&b, 5, "/opt/single/app");
    b.trace.processes.rows[single_file].runtime_version = trace_add_string(&b.trace, "9.0.1");
    assert_int_equal(listen_check_missed(&b.trace), 2);
    trace_builder_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_missed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
