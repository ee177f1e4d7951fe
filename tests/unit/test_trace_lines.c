#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/utf16.h"
#include "child.h"
#include "cli/trace_lines.h"
#include "clr/exception_events.h"
#include "clr/gc_events.h"
#include "clr/provider_names.h"

enum { PAYLOAD_MAX = 4096, INSTANCE = 1 };

/* A listener, and a runtime of 64 bits whose events it is told. */
struct fixture {
    struct trace_lines lines;
    struct buffer payload;
    uint64_t now_ns, thrown_at[THROW_FRAMES];
    size_t frames, questions;
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
    struct trace_line_event event = { .time_ns = f->now_ns, .thread_id = 7, .stack_count = f->frames };
    memcpy(event.stack, f->thrown_at, sizeof event.stack);
    trace_lines_event(&f->lines, &of, buffer_span(&f->payload), &event);
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
    thrown(&f, "App.Late", "NULL", 0);
    trace_lines_end(&f.lines, 1000000000, 0);
    assert_string_equal(said(&f), "     0.001  exception  App.Late: too late (thread 7)\n"
                                  "     0.002  exception  thrown again: App.Late: too late (thread 7)\n"
                                  "     0.003  exception  App.Late: too late (thread 7)\n"
                                  "     0.004  exception  App.Late (thread 7)\n"
                                  "\n"
                                  "exceptions  3 (3/s), 1 times thrown again, by type:\n"
                                  "   100.0 %           3  App.Late\n");
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

/* What was not asked for is not known, and not 0; what was and did not happen is 0. */
static void test_summary_of_what_was_asked(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.lines.json = true;
    f.lines.wants = (struct trace_wants){ .http = true };
    const struct trace_request request = { .from_ns = 1000 };
    struct trace_request ended;
    trace_requests_begin(&f.lines.requests, &request);
    trace_requests_begin(&f.lines.requests, &(struct trace_request){ .from_ns = 2000, .sent = true });
    assert_true(trace_requests_end(&f.lines.requests, request.activity, false, 5000, &ended));
    trace_lines_end(&f.lines, 1000000000, 0);
    const char *text = said(&f);
    assert_non_null(strstr(text, "\"gc\":null,"));
    assert_non_null(strstr(text, "\"alloc\":null,\"exceptions\":null,"));
    assert_non_null(strstr(text, "\"requests\":{\"count\":1,\"mean_ns\":4000,\"longest_ns\":4000,"
                                 "\"running\":1},\"others\":{\"count\":0,"));
    end(&f);
    begin(&f);
    f.lines.json = true;
    trace_lines_end(&f.lines, 1000000000, 0);
    text = said(&f);
    assert_non_null(strstr(text, "\"gc\":{\"by_generation\":[0,0,0],"));
    assert_non_null(strstr(text, "\"alloc\":{\"count\":0,"));
    assert_non_null(strstr(text, "\"exceptions\":{\"count\":0,"));
    assert_non_null(strstr(text, "\"requests\":null,"));
    end(&f);
}

/* Calls are before the addresses of a stack. */
enum { AT_OTHER = 0x1000, AT_DISPATCH = 0x2000, AT_AGAIN = 0x3000, AT_UNKNOWN = 0x4000 };

static bool say_site(void *user, const uint64_t *addrs, size_t count, enum throw_site *out)
{
    struct fixture *f = user;
    for (size_t i = 0; i < count; i++)
        out[i] = addrs[i] == AT_OTHER - 1      ? THROW_SITE_OTHER
                 : addrs[i] == AT_DISPATCH - 1 ? THROW_SITE_DISPATCH
                 : addrs[i] == AT_AGAIN - 1    ? THROW_SITE_AGAIN
                                               : THROW_SITE_UNKNOWN;
    f->questions++;
    return true;
}

static void thrown_at(struct fixture *f, const char *message, uint64_t leaf, uint64_t caller, uint64_t above)
{
    const uint64_t frames[THROW_FRAMES] = { leaf, caller, above };
    memcpy(f->thrown_at, frames, sizeof frames);
    for (f->frames = 0; f->frames < THROW_FRAMES && frames[f->frames];)
        f->frames++;
    thrown(f, "App.Late", message, 0);
}

/* One object, thrown by who made it and again by awaits: in each runtime's way of throwing. */
static void test_passed_on(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.lines.sites = throw_sites_new(say_site, &f);
    thrown_at(&f, "given to a task", AT_AGAIN, AT_OTHER, 0);
    assert_int_equal(f.questions, 0); /* nobody threw one before */
    thrown_at(&f, "m", AT_OTHER, AT_OTHER, AT_OTHER);
    thrown_at(&f, "m", AT_AGAIN, AT_OTHER, AT_OTHER);
    thrown_at(&f, "m", AT_DISPATCH, AT_AGAIN, AT_OTHER);
    thrown_at(&f, "m", AT_DISPATCH, AT_DISPATCH, AT_AGAIN);
    assert_int_equal(f.lines.tally.rethrown, 3);
    assert_int_equal(f.lines.tally.thrown.count, 2);
    assert_int_equal(f.questions, 2);
    thrown_at(&f, "m", AT_DISPATCH, AT_OTHER, AT_AGAIN);
    thrown_at(&f, "m", AT_OTHER, AT_AGAIN, 0);
    thrown_at(&f, "m", AT_UNKNOWN, AT_AGAIN, 0);
    thrown_at(&f, "m", AT_DISPATCH, AT_DISPATCH, AT_DISPATCH);
    thrown_at(&f, "m", 0, 0, 0);
    assert_int_equal(f.lines.tally.rethrown, 3);
    assert_int_equal(f.lines.tally.thrown.count, 7);
    assert_int_equal(f.questions, 3); /* each place once */
    assert_non_null(strstr(said(&f), "exception  thrown again: App.Late: m (thread 7)\n"));
    end(&f);
}

/* After so many places nobody asks: all are new ones. */
static void test_many_places(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.lines.sites = throw_sites_new(say_site, &f);
    for (uint64_t i = 0; i < 2000; i++)
        thrown_at(&f, "m", 0x10000 + i, AT_OTHER, 0);
    assert_in_range(f.questions, 500, 600);
    thrown_at(&f, "m", AT_AGAIN, 0, 0);
    assert_int_equal(f.lines.tally.rethrown, 0);
    assert_int_equal(f.lines.tally.thrown.count, 2001);
    end(&f);
}

static void collected(struct fixture *f, uint32_t number, uint32_t reason)
{
    buffer_u32le(&f->payload, number);
    buffer_u32le(&f->payload, 1); /* generation */
    buffer_u32le(&f->payload, reason);
    buffer_u32le(&f->payload, RUNTIME_GC_BLOCKING);
    tell(f, GC_EVENT_START, 1);
    for (unsigned i = 0; i < GC_EVENT_PINNED; i++) {
        buffer_u64le(&f->payload, 100 << i); /* bytes */
        buffer_u64le(&f->payload, 0);        /* promoted */
    }
    buffer_u64le(&f->payload, 0);
    buffer_u64le(&f->payload, 0);
    for (unsigned i = 0; i < 3; i++)
        buffer_u32le(&f->payload, 0);
    buffer_u16le(&f->payload, INSTANCE);
    buffer_u64le(&f->payload, 512); /* pinned */
    buffer_u64le(&f->payload, 0);
    tell(f, GC_EVENT_HEAP_STATS, 2);
    buffer_u32le(&f->payload, number);
    buffer_u32le(&f->payload, 1);
    tell(f, GC_EVENT_END, 1);
}

static void test_collections(void **state)
{
    (void)state;
    enum { SMALL = 0, INDUCED = 1, AGGRESSIVE = 17 };
    struct fixture f;
    begin(&f);
    collected(&f, 1, INDUCED);
    collected(&f, 2, AGGRESSIVE);
    collected(&f, 3, SMALL);
    const char *text = said(&f);
    assert_non_null(strstr(text, "     0.001  gc         #1 gen 1: induced, paused 0 ns, took 2 ms\n"
                                 "     0.002  heap       gen 0 100 B, gen 1 200 B, gen 2 400 B, large 800 B, "
                                 "pinned 512 B\n"));
    buffer_clear(&f.lines.out);
    trace_lines_end(&f.lines, 1000000000, 0);
    text = said(&f);
    assert_non_null(
        strstr(text, "collections 3: gen 0 0, gen 1 3, gen 2 0; 2 asked for, 0 in the background\n"));
    assert_non_null(strstr(text, "heap        gen 0 100 B, gen 1 200 B,"));
    end(&f);
}

/* Parts of collections are summed up; other events with a small number are not among them. */
static void test_what_has_a_line(void **state)
{
    (void)state;
    enum { IO_THREAD_CREATED = 44, WORKER_STARTED = 50 };
    static const uint32_t ids[] = { IO_THREAD_CREATED, WORKER_STARTED, GC_EVENT_TRIGGERED, GC_EVENT_MARKED };
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        for (unsigned k = 0; k < 4; k++)
            buffer_u32le(&f.payload, 0);
        tell(&f, ids[i], 0);
    }
    const char *text = said(&f);
    assert_non_null(strstr(text, "IOThreadCreation/Start"));
    assert_non_null(strstr(text, "ThreadPoolWorkerThread/Start"));
    assert_null(strstr(text, "GC/"));
    end(&f);
}

/* Two services of one host are two. */
static void test_requests_sent(void **state)
{
    (void)state;
    static const struct {
        uint32_t port;
        const char *said;
    } cases[] = { { 8080, "http out   http://127.0.0.1:8080/orders: failed, took 1 ms\n" },
                  { 80, "http out   http://127.0.0.1/orders: failed, took 1 ms\n" } };
    static const char *const names[] = { "scheme", "host", "port", "pathAndQuery" };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        struct buffer fields;
        char provider[] = HTTP_SENT_PROVIDER;
        begin(&f);
        f.lines.wants.http = true;
        buffer_init(&fields, 256);
        buffer_u32le(&fields, ARRAY_LEN(names));
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            buffer_u32le(&fields, k == 2 ? 9 : 18); /* an int, text */
            utf16_append(&fields, names[k]);
            buffer_u16le(&fields, 0);
        }
        put_text(&f, "http");
        put_text(&f, "127.0.0.1");
        buffer_u32le(&f.payload, cases[i].port);
        put_text(&f, "/orders");
        for (unsigned ends = 0; ends < 2; ends++) {
            struct stream_schema of = { .event_id = ends ? HTTP_SENT_EVENT_FAILED : HTTP_SENT_EVENT_START,
                                        .provider = provider };
            of.schema =
                event_schema_new(&(struct event_description){ .provider = provider,
                                                              .event_id = of.event_id,
                                                              .name = ends ? "RequestFailed" : "RequestStart",
                                                              .fields = buffer_span(&fields),
                                                              .pointer_size = 8 });
            f.now_ns += 1000000;
            trace_lines_event(&f.lines, &of, buffer_span(&f.payload),
                              &(struct trace_line_event){ .time_ns = f.now_ns, .activity = { 1 } });
            event_schema_free(of.schema);
        }
        assert_non_null(strstr(said(&f), cases[i].said));
        buffer_done(&fields);
        end(&f);
    }
}

static void take_note(void *user, const char *text)
{
    snprintf(user, 300, "%s", text);
}

/* What its last exceptions were is not known then, and that is said. */
static void test_target_that_ended(void **state)
{
    (void)state;
    char told[300] = "";
    enum throw_site site = THROW_SITE_UNKNOWN;
    const uint64_t addr = 0x7f0000001000;
    struct error err = { 0 };
    struct target target;
    pid_t child = child_fork();
    if (child == 0)
        for (;;)
            pause();
    assert_true(target_open(child, &target, &err));
    target.runtime = RUNTIME_CORECLR;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct throw_site_target thrown_in = { .target = &target, .note = take_note, .user = told };
    assert_false(throw_sites_ask_target(&thrown_in, &addr, 1, &site));
    assert_non_null(strstr(told, "exceptions that an await throws again are counted as new ones: "));
    target_done(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exceptions_thrown_again),
        cmocka_unit_test(test_thrown_again_as_json),
        cmocka_unit_test(test_summary_of_what_was_asked),
        cmocka_unit_test(test_passed_on),
        cmocka_unit_test(test_many_places),
        cmocka_unit_test(test_collections),
        cmocka_unit_test(test_what_has_a_line),
        cmocka_unit_test(test_requests_sent),
        cmocka_unit_test(test_target_that_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
