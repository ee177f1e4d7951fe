#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/utf16.h"
#include "clr/stream_schemas.h"

enum { TYPE_INT32 = 9 };

/* A type with one field. What it is described by lies in `text`, as in the memory of its reader. */
static struct nettrace_type type_of(struct buffer *text, const char *name, const char *field)
{
    buffer_clear(text);
    utf16_append(text, "App");
    size_t name_off = text->size;
    utf16_append(text, name);
    size_t fields_off = text->size;
    buffer_u32le(text, 1);
    buffer_u32le(text, TYPE_INT32);
    utf16_append(text, field);
    buffer_u16le(text, 0);
    struct span all = buffer_span(text);
    return (struct nettrace_type){
        .event_id = 7,
        .version = 1,
        .provider = span_part(all, 0, name_off),
        .name = span_part(all, name_off, fields_off - name_off),
        .fields = span_part(all, fields_off, all.size - fields_off),
    };
}

static void check_type(struct stream_schemas *x, const struct nettrace_type *type, const char *name,
                       const char *field)
{
    const struct stream_schema *of = stream_schemas_get(x, type, 8);
    if (strcmp(of->provider, "App") != 0 || strcmp(of->name, name) != 0 || of->event_id != 7 ||
        of->version != 1 || event_schema_field(of->schema, field) != 0)
        fail_msg("%s with %s is %s/%s, without it", name, field, of->provider, of->name);
}

/* The same memory describes one type after the other: a stream that says it anew, or the next runtime's. */
static void test_described_anew(void **state)
{
    (void)state;
    struct stream_schemas x;
    struct buffer text;
    buffer_init(&text, 4096);
    buffer_reserve(&text, 1024);
    stream_schemas_init(&x);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const names[] = { "First", "Other", "First" }, *const fields[] = { "one", "one",
                                                                                              "two" };
        struct nettrace_type type = type_of(&text, names[i], fields[i]);
        check_type(&x, &type, names[i], fields[i]);
        check_type(&x, &type, names[i], fields[i]);
    }
    stream_schemas_done(&x);
    buffer_done(&text);
}

/* What a stream can make us keep has an end, and what it describes is right all the same. */
static void test_many(void **state)
{
    (void)state;
    enum { TYPES = 3 * STREAM_SCHEMAS_MAX };
    struct stream_schemas x;
    struct buffer first, text;
    buffer_init(&first, 4096);
    buffer_init(&text, 4096);
    stream_schemas_init(&x);
    struct nettrace_type always = type_of(&first, "Always", "here");
    for (unsigned i = 0; i < TYPES; i++) {
        char name[32], field[32];
        snprintf(name, sizeof name, "Event%u", i % 5000);
        snprintf(field, sizeof field, "field%u", i);
        struct nettrace_type type = type_of(&text, name, field);
        check_type(&x, &type, name, field);
        check_type(&x, &always, "Always", "here");
        if (x.capacity > 2 * STREAM_SCHEMAS_MAX)
            fail_msg("%zu are kept after %u types", x.count, i + 1);
    }
    stream_schemas_done(&x);
    stream_schemas_done(&x);
    buffer_done(&first);
    buffer_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_described_anew),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
