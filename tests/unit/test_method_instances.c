#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "collect/runtime_names.h"

enum { PID = 7, CODE = 0x1000, CODE_BYTES = 0x40, MODULE = 0x5000 };

static void tell(struct runtime_names *names, uint32_t process, enum resolver resolver, uint64_t time_ns,
                 const char *name)
{
    const struct runtime_method method = { .change = RUNTIME_METHOD_LOADED,
                                           .time_ns = time_ns,
                                           .addr = CODE,
                                           .size_bytes = CODE_BYTES,
                                           .module_id = resolver == RESOLVER_EVENTPIPE ? MODULE : 0,
                                           .name = span_of(name, strlen(name)),
                                           .jitted = true,
                                           .generic = true };
    runtime_names_method(names, process, (uint8_t)resolver, &method);
}

/* Events tell which generic method code is of, memory also of which instance: in either order that stays. */
static void test_instances(void **state)
{
    (void)state;
    static const struct {
        const char *event, *memory, *shown;
        bool memory_first;
    } cases[] = {
        { "T::M(int32)", "T::M[System.Int32](int32)", "T::M[System.Int32](int32)", false },
        { "T::M(int32)", "T::M[System.Int32](int32)", "T::M[System.Int32](int32)", true },
        { "T::M(int32)", "T::N[System.Int32](int32)", "T::M(int32)", false }, /* of another one by now */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace_builder b;
        trace_builder_init(&b, 64);
        uint32_t process = trace_builder_process_start(&b, PID, 0);
        struct runtime_names *names = runtime_names_new(&b, true, false, NULL, NULL);
        if (cases[i].memory_first)
            tell(names, process, RESOLVER_MEMORY, CODE_FROM_EVER, cases[i].memory);
        tell(names, process, RESOLVER_EVENTPIPE, 100, cases[i].event);
        assert_int_equal(told_code_is_any_instance(runtime_names_code(names), b.trace.codes.count - 1),
                         !cases[i].memory_first);
        tell(names, process, RESOLVER_MEMORY, CODE_FROM_EVER, cases[i].memory);
        assert_int_equal(b.trace.codes.count, 2);
        const struct trace_code *code = &b.trace.codes.rows[1];
        assert_string_equal(trace_string(&b.trace, b.trace.functions.rows[code->function].name),
                            cases[i].shown);
        runtime_names_free(names);
        trace_builder_done(&b);
    }
}

/* Which assembly it is of was known before its instance was: it is of that still. */
static void test_module(void **state)
{
    (void)state;
    static const char path[] = "/app/shop.dll";
    const struct runtime_module module = { .module_id = MODULE, .path = span_of(path, sizeof path - 1) };
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, PID, 0);
    struct runtime_names *names = runtime_names_new(&b, true, false, NULL, NULL);
    tell(names, process, RESOLVER_EVENTPIPE, 100, "T::M(int32)");
    told_code_module(runtime_names_code(names), process, &module);
    told_code_put_modules(runtime_names_code(names));
    tell(names, process, RESOLVER_MEMORY, CODE_FROM_EVER, "T::M[System.Int32](int32)");
    told_code_put_modules(runtime_names_code(names));
    const struct trace_function *function = &b.trace.functions.rows[b.trace.codes.rows[1].function];
    assert_string_equal(trace_string(&b.trace, function->name), "T::M[System.Int32](int32)");
    assert_string_equal(trace_string(&b.trace, function->module), "shop");
    runtime_names_free(names);
    trace_builder_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instances),
        cmocka_unit_test(test_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
