/* A thread's frame, object and name, made by hand as Native AOT lays them out; and made wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/aot_thread_name.h"

enum {
    BASE = 0x10000,
    BYTES = 0x2000,
    TABLE = BASE + 0x100, /* of threads and of what waits for them */
    STRING_TABLE = BASE + 0x200,
    THREAD = BASE + 0x1000,
    INFO = BASE + 0x1100,
    OTHER = BASE + 0x1200,
    STRING = BASE + 0x1300,
    STRING_TEXT = STRING + 12,
    FRAME_WORDS = 4,
};

static uint8_t bytes[BYTES], frame[8 * FRAME_WORDS];
static struct flat_memory flat = { BASE, bytes, BYTES };

static void put_frame(size_t at, uint64_t word)
{
    for (size_t i = 0; i < 8; i++)
        frame[8 * at + i] = (uint8_t)(word >> 8 * i);
}

static void build(void)
{
    struct buffer text;
    memset(bytes, 0, sizeof bytes);
    memset(frame, 0, sizeof frame);
    buffer_init(&text, BYTES);
    size_t units = utf16_append(&text, "order-export-worker-17");
    flat_memory_put32(&flat, TABLE + 4, 0x38);
    flat_memory_put32(&flat, STRING_TABLE, 0x80000002);
    flat_memory_put32(&flat, STRING_TABLE + 4, 22);
    flat_memory_put64(&flat, THREAD, TABLE);
    flat_memory_put64(&flat, THREAD + 0x10, STRING);
    flat_memory_put64(&flat, THREAD + 0x18, INFO);
    flat_memory_put64(&flat, INFO, TABLE);
    flat_memory_put64(&flat, INFO + 8, THREAD);
    flat_memory_put64(&flat, OTHER, TABLE);
    flat_memory_put64(&flat, STRING, STRING_TABLE);
    flat_memory_put32(&flat, STRING + 8, (uint32_t)units);
    memcpy(bytes + (STRING_TEXT - BASE), text.data, text.size);
    put_frame(0, 17);
    put_frame(1, THREAD);
    put_frame(2, OTHER);
    put_frame(3, THREAD);
    buffer_done(&text);
}

static bool read_name(struct buffer *out)
{
    struct memory_mapping mapping = { .start = BASE, .end = BASE + BYTES, .writable = true, .path = "" };
    struct memory memory = { flat_memory_read, &flat, &mapping, 1, false };
    struct memory_pages pages;
    memory_pages_init(&pages, &memory, 1 << 20);
    buffer_init(out, BYTES);
    bool found = aot_thread_name_read(&pages, span_of(frame, sizeof frame), out);
    memory_pages_done(&pages);
    return found;
}

static void test_name(void **state)
{
    struct buffer name;
    (void)state;
    build();
    assert_true(read_name(&name));
    assert_true(span_equals(buffer_span(&name), span_of("order-export-worker-17", 22)));
    buffer_done(&name);
}

static const struct {
    const char *name;
    uint64_t addr, value;
} wrong[] = {
    { "no name", THREAD + 0x10, 0 },
    { "a name that is no string", THREAD + 0x10, OTHER },
    { "two strings", THREAD + 0x20, STRING },
    { "nothing refers back", INFO + 8, OTHER },
    { "it refers to itself only", THREAD + 0x18, THREAD },
    { "no type", THREAD, 0 },
    { "a type out of memory", THREAD, 0x7fff0000 },
    { "an object that is too large", TABLE, UINT64_C(0x100000000000) },
    { "an array", TABLE, UINT64_C(0x3880000008) },
    { "an empty name", STRING + 8, 0 },
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct buffer name;
        build();
        flat_memory_put64(&flat, wrong[i].addr, wrong[i].value);
        if (read_name(&name))
            fail_msg("%s", wrong[i].name);
        buffer_done(&name);
    }
}

/* Two that may be it: neither counts. */
static void test_two(void **state)
{
    struct buffer name;
    (void)state;
    build();
    put_frame(2, INFO); /* refers to the thread, which refers to it */
    assert_false(read_name(&name));
    buffer_done(&name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
