#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/activity_spans.h"
#include "base/own.h"
#include "clr/provider_names.h"
#include "told_fixture.h"

enum { OBJECT = 1, TEXT16 = 18, ARRAY = 19 };

#define OUTER "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"
#define INNER "00-4bf92f3577b34da6a3ce929d0e0e4736-53995c3f42cd8ad8-0"
#define NO_ID "0000000000000000"

struct argument {
    const char *key, *value;
};

/* As in nettrace 6: how long it is, its name, its type. */
static void put_field(struct buffer *out, const char *name, const uint8_t *type, size_t type_size)
{
    size_t size = strlen(name);
    buffer_u16le(out, (uint16_t)(1 + size + type_size));
    buffer_u8(out, (uint8_t)size);
    buffer_append(out, name, size);
    buffer_append(out, type, type_size);
}

/* SourceName, ActivityName, and Arguments: an array of objects of Key and Value. */
static void put_description(struct buffer *out)
{
    static const uint8_t text[] = { TEXT16 };
    struct buffer arguments;
    buffer_init(&arguments, 256);
    buffer_u8(&arguments, ARRAY);
    buffer_u8(&arguments, OBJECT);
    buffer_u16le(&arguments, 2);
    put_field(&arguments, "Key", text, 1);
    put_field(&arguments, "Value", text, 1);
    buffer_u16le(out, 3);
    put_field(out, "SourceName", text, 1);
    put_field(out, "ActivityName", text, 1);
    put_field(out, "Arguments", arguments.data, arguments.size);
    buffer_done(&arguments);
}

static void tell(struct told_fixture *f, uint64_t time_ns, uint32_t tid, bool begins, const char *name,
                 const struct argument *arguments /* to one without a key */)
{
    struct buffer fields;
    uint16_t count = 0;
    buffer_init(&fields, 512);
    put_description(&fields);
    struct trace_event_type type = { .provider = trace_add_string(&f->b.trace, DIAGNOSTIC_SOURCE_PROVIDER),
                                     .name = trace_add_string(&f->b.trace,
                                                              begins ? "Activity/Start" : "Activity/Stop"),
                                     .fields = trace_add_span(&f->b.trace, buffer_span(&fields)),
                                     .description = EVENT_DESCRIBED_V6,
                                     .event_id = begins ? 11 : 12,
                                     .pointer_size = 8 };
    told_text(f, "Shop");
    told_text(f, name);
    while (arguments[count].key)
        count++;
    buffer_u16le(&f->payload, count);
    for (size_t i = 0; i < count; i++) {
        told_text(f, arguments[i].key);
        told_text(f, arguments[i].value);
    }
    struct trace_event row = { .time_ns = time_ns,
                               .type = trace_builder_event_type(&f->b, &type),
                               .process = trace_builder_process_start(&f->b, f->pid, 0),
                               .thread = trace_builder_thread(&f->b, f->pid, tid, 0) };
    trace_push_event(&f->b.trace, &row, buffer_span(&f->payload));
    buffer_clear(&f->payload);
    buffer_done(&fields);
}

static void check_spans(struct told_fixture *f, const char *const *names, const uint64_t *took_ns,
                        size_t count, uint64_t by_thread)
{
    struct span_table table;
    uint64_t found;
    span_table_init(&table);
    assert_true(activity_spans_add(&table, &f->b.trace, 0, 0, &found));
    span_table_seal(&table, &f->b.trace);
    assert_int_equal(found, by_thread);
    assert_int_equal(table.count, count);
    assert_int_equal(table.unbegun + table.unfinished, 0);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(intern_text(&table.texts, table.rows[i].name), names[i]);
        assert_int_equal(span_ns(&table.rows[i]), took_ns[i]);
        assert_int_equal(table.rows[i].on_one_thread, by_thread != 0);
    }
    span_table_done(&table);
}

/* They end on threads that they did not begin on, the outer one before the inner one. */
static void test_ids(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    tell(&f, 1000, 1, true, "order", (struct argument[]){ { "Id", OUTER "1" }, { "SpanId", "x" }, { NULL } });
    tell(&f, 1100, 1, true, "order",
         (struct argument[]){ { "ParentId", OUTER "0" }, { "Id", INNER "1" }, { NULL } });
    tell(&f, 1300, 2, false, "order", (struct argument[]){ { "Id", OUTER "1" }, { NULL } });
    tell(&f, 1600, 3, false, "order",
         (struct argument[]){ { "Status", "Ok" }, { "Id", INNER "0" }, { NULL } });
    check_spans(&f, (const char *const[]){ "Shop/order", "Shop/order > Shop/order" },
                (const uint64_t[]){ 300, 500 }, 2, 0);
    told_fixture_end(&f);
}

/* What filters make of the arguments: other names, or less. */
static void test_filters(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    tell(&f, 1000, 1, true, "pay", (struct argument[]){ { "ActivityId", "|a.1." }, { NULL } });
    tell(&f, 1010, 1, true, "pay",
         (struct argument[]){ { "SpanId", "53995c3f42cd8ad8" }, { "ParentSpanId", NO_ID }, { NULL } });
    tell(&f, 1020, 2, false, "pay", (struct argument[]){ { "ActivityId", "|a.1." }, { NULL } });
    tell(&f, 1040, 2, false, "pay", (struct argument[]){ { "SpanId", "53995c3f42cd8ad8" }, { NULL } });
    check_spans(&f, (const char *const[]){ "Shop/pay", "Shop/pay" }, (const uint64_t[]){ 20, 30 }, 2, 0);
    told_fixture_end(&f);
}

/* Who tells nothing of itself is known by its thread. */
static void test_no_id(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    tell(&f, 1000, 1, true, "pay", (struct argument[]){ { "SpanId", NO_ID }, { "Id", "" }, { NULL } });
    tell(&f, 1100, 2, true, "pay", (struct argument[]){ { NULL } });
    tell(&f, 1300, 1, false, "pay", (struct argument[]){ { "Kind", "Id" }, { NULL } });
    tell(&f, 1500, 2, false, "pay", (struct argument[]){ { NULL } });
    check_spans(&f, (const char *const[]){ "Shop/pay", "Shop/pay" }, (const uint64_t[]){ 300, 400 }, 2, 2);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ids), cmocka_unit_test(test_filters),
                                        cmocka_unit_test(test_no_id) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
