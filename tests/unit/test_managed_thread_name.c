/* A thread's object and its name, made by hand as .NET lays them out; and made wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/managed_thread_name.h"

enum {
    BASE = 0x10000,
    BYTES = 0x3000,
    THREAD = BASE + 0x100,
    HANDLE = BASE + 0x800,
    OBJECT = BASE + 0x1000,
    STRING = BASE + 0x2000,
    STRING_TEXT = STRING + 12,
};

static const struct managed_thread_name_place place = { .handle = 0x130, .thread = 0x30, .name = 0x18 };
static const struct managed_thread thread = { .addr = THREAD, .tid = 100 };

static uint8_t bytes[BYTES];
static struct flat_memory flat = { BASE, bytes, BYTES };

/* Returns the name's units. */
static size_t build(const char *name)
{
    struct buffer text;
    memset(bytes, 0, sizeof bytes);
    flat.size = BYTES;
    buffer_init(&text, BYTES);
    size_t units = utf16_append(&text, name);
    flat_memory_put64(&flat, THREAD + place.handle, HANDLE);
    flat_memory_put64(&flat, HANDLE, OBJECT);
    flat_memory_put64(&flat, OBJECT + place.thread, THREAD);
    flat_memory_put64(&flat, OBJECT + place.name, STRING);
    flat_memory_put32(&flat, STRING + 8, (uint32_t)units);
    memcpy(bytes + (STRING_TEXT - BASE), text.data, text.size);
    buffer_done(&text);
    return units;
}

static bool read_name(struct buffer *out)
{
    struct memory_mapping mapping = { .start = BASE, .end = BASE + BYTES, .writable = true, .path = "" };
    struct memory memory = { flat_memory_read, &flat, &mapping, 1, false };
    struct memory_pages pages;
    memory_pages_init(&pages, &memory, 1 << 20);
    buffer_init(out, BYTES);
    bool found = managed_thread_name_read(&pages, &place, &thread, out);
    memory_pages_done(&pages);
    return found;
}

static void test_names(void **state)
{
    static const char *const names[] = { "worker", "order-export-worker-17",
                                         "\xc3\xbcn \xf0\x9f\x90\x9f \"q\"" };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buffer name;
        build(names[i]);
        assert_true(read_name(&name));
        assert_true(span_equals(buffer_span(&name), span_of(names[i], strlen(names[i]))));
        buffer_done(&name);
    }
}

static void test_long(void **state)
{
    char text[2 * MANAGED_THREAD_NAME_MAX + 1];
    struct buffer name;
    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    build(text);
    assert_true(read_name(&name));
    assert_int_equal(name.size, MANAGED_THREAD_NAME_MAX);
    buffer_done(&name);
}

static const struct {
    const char *name;
    uint64_t addr, value;
} wrong[] = {
    { "no handle", THREAD + 0x130, 0 },
    { "a handle that is not aligned", THREAD + 0x130, HANDLE + 1 },
    { "a handle out of memory", THREAD + 0x130, 0x7fff0000 },
    { "a handle of nothing", HANDLE, 0 },
    { "another thread's object", OBJECT + 0x30, THREAD + 0x10 },
    { "no name", OBJECT + 0x18, 0 },
    { "a name that is not aligned", OBJECT + 0x18, STRING + 4 },
    { "a name out of memory", OBJECT + 0x18, 0x7fff0000 },
    { "an empty name", STRING + 8, 0 },
    { "a name that ends out of memory", OBJECT + 0x18, BASE + BYTES - 16 },
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct buffer name;
        build("worker");
        flat_memory_put32(&flat, BASE + BYTES - 8, 100); /* characters from the last four bytes on */
        flat_memory_put64(&flat, wrong[i].addr, wrong[i].value);
        if (read_name(&name) || name.size)
            fail_msg("%s", wrong[i].name);
        buffer_done(&name);
    }
}

/* Memory that ends anywhere: the whole name or none. */
static void test_cut(void **state)
{
    (void)state;
    size_t units = build("worker"), end = STRING_TEXT - BASE + 2 * units;
    for (flat.size = 0; flat.size <= BYTES; flat.size += 4) {
        struct buffer name;
        if (read_name(&name))
            assert_true(flat.size >= end && name.size == units);
        else
            assert_true(flat.size < BYTES);
        buffer_done(&name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
