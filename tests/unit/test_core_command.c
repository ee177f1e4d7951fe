#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/own.h"
#include "collect/core_command.h"

enum { STACK_BYTES = 8192, STACK_BASE = 0x7fff0000, VECTOR_AT = 4096, STRINGS_AT = 6000 };

/* The top of a stack as the kernel makes it; returns what `core` reads from. */
struct stack {
    uint8_t bytes[STACK_BYTES];
    struct flat_memory memory;
    struct core_file core;
};

static void stack_build(struct stack *s, const char *const *arguments, size_t count, size_t variables)
{
    *s = (struct stack){ 0 };
    s->memory = (struct flat_memory){ STACK_BASE, s->bytes, sizeof s->bytes };
    const uint64_t vector[] = { 33, 0x7000, 25, STACK_BASE + VECTOR_AT + 200, 31, STACK_BASE + STRINGS_AT,
                                0,  0 };
    memcpy(s->bytes + VECTOR_AT, vector, sizeof vector);
    memcpy(s->core.auxiliary, vector, sizeof vector);
    s->core.auxiliary_bytes = sizeof vector;
    s->core.memory = (struct memory){ .read = flat_memory_read, .user = &s->memory };
    uint64_t at = STACK_BASE + VECTOR_AT - 8 * (variables + 1), string = STRINGS_AT;
    for (size_t i = 0; i < variables; i++)
        flat_memory_put64(&s->memory, at + 8 * i, 0x5000 + i);
    at -= 8 * (count + 1);
    for (size_t i = 0; i < count; i++) {
        flat_memory_put64(&s->memory, at + 8 * i, STACK_BASE + string);
        memcpy(s->bytes + string, arguments[i], strlen(arguments[i]) + 1);
        string += strlen(arguments[i]) + 1;
    }
    flat_memory_put64(&s->memory, at - 8, count);
}

static const char *const words[] = { "dotnet", "/srv/a shop/shop.dll", "", "--urls" };

static void test_command(void **state)
{
    (void)state;
    static const char wanted[] = "dotnet\0/srv/a shop/shop.dll\0\0--urls";
    struct buffer out;
    struct stack s;
    buffer_init(&out, 1 << 16);
    for (size_t variables = 0; variables < 40; variables += 13) {
        stack_build(&s, words, ARRAY_LEN(words), variables);
        buffer_clear(&out);
        assert_true(core_command_read(&s.core, &out));
        assert_true(span_equals(buffer_span(&out), span_of(wanted, sizeof wanted)));
    }
    buffer_done(&out);
}

/* Whatever of it a dump left out, and whatever the pointers say. */
static void test_damage(void **state)
{
    (void)state;
    struct buffer out;
    struct stack s;
    buffer_init(&out, 1 << 16);
    for (size_t size = 0; size < STACK_BYTES; size += 7) {
        stack_build(&s, words, ARRAY_LEN(words), 3);
        s.memory.size = size;
        buffer_clear(&out);
        bool found = core_command_read(&s.core, &out);
        assert_true(!found || size > VECTOR_AT);
    }
    for (size_t at = VECTOR_AT - 100; at < VECTOR_AT + 64; at++) {
        stack_build(&s, words, ARRAY_LEN(words), 3);
        s.bytes[at] ^= 0xff;
        core_command_read(&s.core, &out);
        stack_build(&s, words, ARRAY_LEN(words), 3);
        if (at >= VECTOR_AT)
            s.core.auxiliary[at - VECTOR_AT] ^= 0xff;
        buffer_clear(&out);
        core_command_read(&s.core, &out);
    }
    stack_build(&s, words, 0, 0);
    buffer_clear(&out);
    assert_false(core_command_read(&s.core, &out));
    s.core.auxiliary_bytes = 0;
    assert_false(core_command_read(&s.core, &out));
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_command), cmocka_unit_test(test_damage) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
