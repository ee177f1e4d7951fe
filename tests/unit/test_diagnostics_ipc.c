#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/utf16.h"
#include "clr/diagnostics_ipc.h"

#define MAGIC "DOTNET_IPC_V1\0"

static const struct ipc_provider ab = { .name = "Ab", .keywords = 1, .level = 4 };

static void check_bytes(const struct buffer *b, const char *bytes, size_t size)
{
    assert_false(b->failed);
    assert_int_equal(b->size, size);
    assert_memory_equal(b->data, bytes, size);
}

static void test_requests(void **state)
{
    (void)state;
    struct buffer b;
    struct error err;
    buffer_init(&b, IPC_MESSAGE_MAX);
    ipc_append_plain(&b, IPC_PROCESS_INFO);
    check_bytes(&b, MAGIC "\x14\0\4\0\0\0", 20);
    buffer_clear(&b);
    ipc_append_set_environment(&b, "A", "");
    check_bytes(&b, MAGIC "\x22\0\4\3\0\0\2\0\0\0A\0\0\0\1\0\0\0\0\0", 34);
    buffer_clear(&b);
    ipc_append_stop(&b, 0x7f12ac003450);
    check_bytes(&b, MAGIC "\x1c\0\2\1\0\0\x50\x34\0\xac\x12\x7f\0\0", 28);

    struct ipc_session_request request = { .buffer_mb = 256, .providers = &ab, .provider_count = 1 };
    buffer_clear(&b);
    assert_true(ipc_append_collect(&b, IPC_COLLECT_TRACING2, &request, &err));
    check_bytes(
        &b,
        MAGIC
        "\x3d\0\2\3\0\0\0\1\0\0\1\0\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\4\0\0\0\3\0\0\0A\0b\0\0\0\1\0\0\0\0\0",
        0x3d);
    buffer_clear(&b);
    assert_true(ipc_append_collect(&b, IPC_COLLECT_TRACING, &request, &err));
    assert_int_equal(b.size, 0x3c);
    buffer_clear(&b);
    assert_true(ipc_append_collect(&b, IPC_COLLECT_TRACING3, &request, &err));
    assert_int_equal(b.size, 0x3e);

    static const uint32_t ids[] = { 1, 2, 1 }; /* a repeated one would silence the provider */
    struct ipc_provider filtered = ab;
    filtered.filter = IPC_FILTER_ALLOW;
    filtered.event_ids = ids;
    filtered.event_id_count = 3;
    request.providers = &filtered;
    request.stacks = true;
    request.rundown_keywords = 0x80020139;
    buffer_clear(&b);
    assert_true(ipc_append_collect(&b, IPC_COLLECT_TRACING5, &request, &err));
    check_bytes(
        &b,
        MAGIC
        "\x56\0\2\6\0\0\0\0\0\0\0\1\0\0\1\0\0\0\x39\1\2\x80\0\0\0\0\1\1\0\0\0\1\0\0\0\0\0\0\0\4\0\0\0\3\0"
        "\0\0A\0b\0\0\0\1\0\0\0\0\0\1\2\0\0\0\1\0\0\0\2\0\0\0",
        0x56);
    buffer_done(&b);
}

static void test_one_entry_a_provider(void **state)
{
    (void)state;
    const struct ipc_provider twice[] = {
        { .name = "Ab", .keywords = 1, .level = 4 },
        { .name = "Other", .keywords = 1, .level = 1 },
        { .name = "Ab", .keywords = 0x10, .level = 5, .args = "k=v" },
    };
    const struct ipc_provider once[] = {
        { .name = "Ab", .keywords = 0x11, .level = 5, .args = "k=v" },
        { .name = "Other", .keywords = 1, .level = 1 },
    };
    struct ipc_session_request request = { .buffer_mb = 1, .providers = twice, .provider_count = 3 };
    struct buffer a, b;
    struct error err;
    buffer_init(&a, IPC_MESSAGE_MAX);
    buffer_init(&b, IPC_MESSAGE_MAX);
    assert_true(ipc_append_collect(&a, IPC_COLLECT_TRACING4, &request, &err));
    request.providers = once;
    request.provider_count = 2;
    assert_true(ipc_append_collect(&b, IPC_COLLECT_TRACING4, &request, &err));
    check_bytes(&a, (const char *)b.data, b.size);
    buffer_done(&a);
    buffer_done(&b);
}

static void test_event_sources_get_the_session_bits(void **state)
{
    (void)state;
    struct ipc_provider source = { .name = "A", .keywords = 0, .level = 4, .is_event_source = true };
    struct ipc_session_request request = { .buffer_mb = 1, .providers = &source, .provider_count = 1 };
    struct buffer b;
    struct error err;
    buffer_init(&b, IPC_MESSAGE_MAX);
    assert_true(ipc_append_collect(&b, IPC_COLLECT_TRACING2, &request, &err));
    assert_int_equal(load_u64le(b.data + 20 + 13), UINT64_C(0xF00000000000));
    buffer_done(&b);
}

/* Requests that a runtime answers by dying, or not at all. */
static void test_what_cannot_be_asked(void **state)
{
    (void)state;
    static const uint32_t ids[] = { 1 };
    static const struct ipc_provider nameless = { .name = "", .level = 4 };
    static const struct ipc_provider loud = { .name = "A", .level = 6 };
    static const struct ipc_provider filters[] = {
        { .name = "A", .filter = IPC_FILTER_ALLOW, .event_ids = ids, .event_id_count = 1 },
        { .name = "A" },
    };
    static const struct ipc_provider args[] = { { .name = "A", .args = "a=1" },
                                                { .name = "A", .args = "a=2" } };
    struct ipc_provider *many = calloc(1001, sizeof *many);
    assert_non_null(many);
    for (size_t i = 0; i < 1001; i++)
        many[i] = ab;
    char *longest = malloc(40000);
    assert_non_null(longest);
    memset(longest, 'x', 39999);
    longest[39999] = '\0';
    const struct ipc_provider huge = { .name = longest };
    const struct {
        const char *what;
        struct ipc_session_request request;
        enum ipc_command command;
    } cases[] = {
        { "buffer of 0 MB", { .buffer_mb = 0, .providers = &ab, .provider_count = 1 }, IPC_COLLECT_TRACING2 },
        { "buffer of 16385 MB",
          { .buffer_mb = 16385, .providers = &ab, .provider_count = 1 },
          IPC_COLLECT_TRACING2 },
        { "0 event providers",
          { .buffer_mb = 1, .providers = &ab, .provider_count = 0 },
          IPC_COLLECT_TRACING2 },
        { "1001 event providers",
          { .buffer_mb = 1, .providers = many, .provider_count = 1001 },
          IPC_COLLECT_TRACING2 },
        { "without a name",
          { .buffer_mb = 1, .providers = &nameless, .provider_count = 1 },
          IPC_COLLECT_TRACING2 },
        { "level 6", { .buffer_mb = 1, .providers = &loud, .provider_count = 1 }, IPC_COLLECT_TRACING2 },
        { "once with a choice",
          { .buffer_mb = 1, .providers = filters, .provider_count = 2 },
          IPC_COLLECT_TRACING5 },
        { "different arguments",
          { .buffer_mb = 1, .providers = args, .provider_count = 2 },
          IPC_COLLECT_TRACING5 },
        { "do not fit", { .buffer_mb = 1, .providers = &huge, .provider_count = 1 }, IPC_COLLECT_TRACING2 },
        { "no command", { .buffer_mb = 1, .providers = &ab, .provider_count = 1 }, IPC_PROCESS_INFO },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        struct error err = { 0 };
        buffer_init(&b, IPC_MESSAGE_MAX);
        assert_false(ipc_append_collect(&b, cases[i].command, &cases[i].request, &err));
        assert_int_equal(err.kind, ERROR_USAGE);
        if (!strstr(err.what, cases[i].what))
            fail_msg("%s: %s", cases[i].what, err.what);
        assert_int_equal(b.size, 0);
        buffer_done(&b);
    }
    free(many);
    free(longest);
}

static void test_ladder(void **state)
{
    (void)state;
    struct ipc_provider p = ab;
    struct ipc_session_request request = {
        .buffer_mb = 1, .stacks = true, .providers = &p, .provider_count = 1
    };
    assert_int_equal(ipc_best_collect(&request), IPC_COLLECT_TRACING2);
    request.stacks = false;
    assert_int_equal(ipc_best_collect(&request), IPC_COLLECT_TRACING3);
    request.rundown_keywords = 0x10;
    assert_int_equal(ipc_best_collect(&request), IPC_COLLECT_TRACING4);
    p.filter = IPC_FILTER_DENY;
    enum ipc_command command = ipc_best_collect(&request);
    for (enum ipc_command expected = IPC_COLLECT_TRACING5; expected >= IPC_COLLECT_TRACING; expected--) {
        assert_int_equal(command, expected);
        command = ipc_older_collect(command, &request);
    }
    assert_int_equal(command, 0);

    /* with stacks, 3 says no more than 2; without a choice of rundown, 4 no more than 3 */
    request.stacks = true;
    assert_int_equal(ipc_older_collect(IPC_COLLECT_TRACING5, &request), IPC_COLLECT_TRACING4);
    assert_int_equal(ipc_older_collect(IPC_COLLECT_TRACING4, &request), IPC_COLLECT_TRACING2);
    request.rundown_keywords = IPC_RUNDOWN_DEFAULT;
    assert_int_equal(ipc_older_collect(IPC_COLLECT_TRACING5, &request), IPC_COLLECT_TRACING2);
    p.filter = IPC_FILTER_NONE;
    assert_int_equal(ipc_best_collect(&request), IPC_COLLECT_TRACING2);
}

static void test_reply_headers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *bytes;
        size_t size;
        bool ok, is_error;
        uint32_t content;
    } cases[] = {
        { "ok", MAGIC "\x1c\0\xff\0\0\0", 20, true, false, 8 },
        { "error", MAGIC "\x18\0\xff\xff\0\0", 20, true, true, 4 },
        { "largest", MAGIC "\xff\xff\xff\0\0\0", 20, true, false, 65515 },
        { "cut", MAGIC "\x1c\0\xff\0\0\0", 19, false, false, 0 },
        { "size 0", MAGIC "\0\0\xff\0\0\0", 20, false, false, 0 },
        { "size 19", MAGIC "\x13\0\xff\0\0\0", 20, false, false, 0 },
        { "wrong magic", "DOTNET_IPC_V2\0\x1c\0\xff\0\0\0", 20, false, false, 0 },
        { "a request", MAGIC "\x14\0\4\0\0\0", 20, false, false, 0 },
        { "unknown reply", MAGIC "\x14\0\xff\1\0\0", 20, false, false, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t content = 0;
        bool is_error = false;
        struct error err = { 0 };
        bool ok = ipc_read_header(span_of(cases[i].bytes, cases[i].size), &content, &is_error, &err);
        if (ok != cases[i].ok || content != cases[i].content || is_error != cases[i].is_error ||
            ok == (err.kind == ERROR_INPUT))
            fail_msg("%s: %s", cases[i].name, err.what);
    }
    assert_int_equal(ipc_read_result(span_of("\x85\x13\x13\x80", 4)), (uint32_t)IPC_UNKNOWN_COMMAND);
    assert_int_equal(ipc_read_result(span_of("\x85\x13", 2)), (uint32_t)IPC_FAILED);
    assert_string_equal(ipc_result_name((uint32_t)IPC_UNKNOWN_COMMAND), "unknown command");
    assert_string_equal(ipc_result_name(12345), "error");
}

static void append_string(struct buffer *b, const char *text)
{
    buffer_u32le(b, (uint32_t)strlen(text) + 1);
    utf16_append(b, text);
    buffer_u16le(b, 0);
}

static void test_process_info(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 4096);
    buffer_u32le(&b, 1);
    buffer_u64le(&b, 4242);
    buffer_append(&b, "0123456789abcdef", 16);
    append_string(&b, "/app/app --x");
    append_string(&b, "Linux");
    append_string(&b, "x64");
    append_string(&b, "app");
    append_string(&b, "10.0.12");
    append_string(&b, "linux-x64");
    struct ipc_process_info info;
    struct error err;
    assert_true(ipc_read_process_info(buffer_span(&b), IPC_PROCESS_INFO3, &info, &err));
    assert_int_equal(info.pid, 4242);
    assert_memory_equal(info.cookie, "0123456789abcdef", 16);
    assert_string_equal(ipc_process_text(&info, info.command_line), "/app/app --x");
    assert_string_equal(ipc_process_text(&info, info.os), "Linux");
    assert_string_equal(ipc_process_text(&info, info.entry_assembly), "app");
    assert_string_equal(ipc_process_text(&info, info.runtime_version), "10.0.12");
    assert_string_equal(ipc_process_text(&info, info.runtime_id), "linux-x64");
    ipc_process_info_done(&info);
    for (size_t size = 0; size < b.size; size++)
        assert_false(ipc_read_process_info(span_of(b.data, size), IPC_PROCESS_INFO3, &info, &err));
    /* the oldest form has neither version nor assembly */
    struct span oldest = span_part(buffer_span(&b), 4, b.size - 4);
    assert_true(ipc_read_process_info(oldest, IPC_PROCESS_INFO, &info, &err));
    assert_string_equal(ipc_process_text(&info, info.arch), "x64");
    assert_string_equal(ipc_process_text(&info, info.runtime_version), "");
    ipc_process_info_done(&info);
    /* a length of 2^31 units */
    b.data[28] = 0xff;
    b.data[31] = 0x7f;
    assert_false(ipc_read_process_info(buffer_span(&b), IPC_PROCESS_INFO3, &info, &err));
    buffer_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_one_entry_a_provider),
        cmocka_unit_test(test_event_sources_get_the_session_bits),
        cmocka_unit_test(test_what_cannot_be_asked),
        cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_reply_headers),
        cmocka_unit_test(test_process_info),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
