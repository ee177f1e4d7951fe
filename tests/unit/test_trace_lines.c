#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "cli/trace_lines.h"
#include "clr/exception_events.h"
#include "clr/gc_events.h"

enum { PAYLOAD_MAX = 4096, INSTANCE = 1 };

/* A listener, and a runtime of 64 bits whose events it is told. */
struct fixture {
    struct trace_lines lines;
    struct buffer payload;
    uint64_t now_ns;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){ .now_ns = 0 };
    trace_lines_init(&f->lines);
    f->lines.wants = (struct trace_wants){ .gc = true, .heap = true, .alloc = true, .exceptions = true };
    buffer_init(&f->payload, PAYLOAD_MAX);
}

static void end(struct fixture *f)
{
    buffer_done(&f->payload);
    trace_lines_done(&f->lines);
}

static void tell(struct fixture *f, uint32_t id, uint32_t version)
{
    struct event_schema *schema = event_schema_new(&(struct event_description){
        .provider = RUNTIME_PROVIDER, .event_id = id, .version = version, .name = "", .pointer_size = 8 });
    char provider[] = RUNTIME_PROVIDER;
    const struct stream_schema of = {
        .event_id = id, .version = version, .provider = provider, .schema = schema
    };
    f->now_ns += 1000000;
    trace_lines_event(&f->lines, &of, buffer_span(&f->payload),
                      &(struct trace_line_event){ .time_ns = f->now_ns, .thread_id = 7 });
    event_schema_free(schema);
    buffer_clear(&f->payload);
}

static void put_text(struct fixture *f, const char *text)
{
    for (; *text; text++)
        buffer_u16le(&f->payload, (uint8_t)*text);
    buffer_u16le(&f->payload, 0);
}

static void thrown(struct fixture *f, const char *type, const char *message, uint16_t flags)
{
    put_text(f, type);
    put_text(f, message);
    buffer_u64le(&f->payload, 0x7f00);
    buffer_u32le(&f->payload, 0x80131537);
    buffer_u16le(&f->payload, flags);
    buffer_u16le(&f->payload, INSTANCE);
    tell(f, EXCEPTION_EVENT_THROWN, 1);
}

/* What was said so far. */
static const char *said(struct fixture *f)
{
    buffer_u8(&f->lines.out, 0);
    return (const char *)f->lines.out.data;
}

static void test_exceptions_thrown_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    thrown(&f, "App.Late", "too late", 0);
    thrown(&f, "App.Late", "too late", EXCEPTION_FLAG_RETHROWN);
    thrown(&f, "App.Late", "too late", EXCEPTION_FLAG_NESTED);
    trace_lines_end(&f.lines, 1000000000, 0);
    assert_string_equal(said(&f), "     0.001  exception  App.Late: too late (thread 7)\n"
                                  "     0.002  exception  thrown again: App.Late: too late (thread 7)\n"
                                  "     0.003  exception  App.Late: too late (thread 7)\n"
                                  "\n"
                                  "exceptions  2 (2/s), 1 times thrown again, by type:\n"
                                  "   100.0 %           2  App.Late\n");
    end(&f);
}

static void test_thrown_again_as_json(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.lines.json = true;
    f.lines.threads = trace_threads_new(getpid(), (uint32_t)getpid());
    thrown(&f, "App.Late", "too late", EXCEPTION_FLAG_RETHROWN);
    assert_non_null(strstr(said(&f), "\"ExceptionFlags\":\"ReThrown\""));
    buffer_clear(&f.lines.out);
    trace_lines_end(&f.lines, 1000000000, 0);
    assert_non_null(strstr(said(&f), "\"exceptions\":{\"count\":0,\"top\":[],\"rethrown\":1},"));
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exceptions_thrown_again),
        cmocka_unit_test(test_thrown_again_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
