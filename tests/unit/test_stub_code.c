#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/stub_code.h"

/* Bytes of running programs (.NET 10.0.12), and where in them the sampled address was. */
static const struct {
    const char *kind;
    uint8_t bytes[48];
    size_t size, at;
} cases
    [] = {
        { "[fixup precode]",
          { 0xff, 0x25, 0xfa, 0x3f, 0,    0,    0x4c, 0x8b, 0x15, 0xfb,
            0x3f, 0,    0,    0xff, 0x25, 0xfd, 0x3f, 0,    0,    0x90 },
          20,
          0 },
        { "[fixup precode]",
          { 0xff, 0x25, 0xfa, 0x3f, 0,    0,    0x4c, 0x8b, 0x15, 0xfb,
            0x3f, 0,    0,    0xff, 0x25, 0xfd, 0x3f, 0,    0,    0x90 },
          20,
          13 },
        { "[stub precode]",
          { 0x4c, 0x8b, 0x15, 0xf9, 0x3f, 0, 0, 0xff, 0x25, 0xfb, 0x3f, 0, 0, 0x90, 0x66, 0x90 },
          16,
          7 },
        { "[dispatch stub]",
          { 0x48, 0xb8, 0x78, 0x1d, 0xf4, 0x72, 0x32, 0x7f, 0,    0,    0x48, 0x39, 0x07, 0x90, 0x48, 0xb8,
            0xb0, 0x8f, 0x79, 0x74, 0x32, 0x7f, 0,    0,    0x0f, 0x85, 0xc7, 0x89, 0,    0,    0xff, 0xe0 },
          32,
          10 },
        { "[vtable call stub]", { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x40, 0x40, 0xff, 0x60, 0x20 }, 10, 7 },
        { "[dynamic helper]",
          { 0x48, 0xbf, 0x60, 0xc5, 0xd9, 0x72, 0x32, 0x7f, 0, 0, 0xe9, 0x79, 0xf7, 0x57, 0x7e },
          15,
          10 },
        { NULL, { 0x55, 0x48, 0x89, 0xe5, 0x90 }, 5, 1 },
        /* behind the stub's last byte */
        { NULL, { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x40, 0x40, 0xff, 0x60, 0x20, 0xcc }, 11, 10 },
    };

static void test_kinds(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *kind = stub_code_kind(span_of(cases[i].bytes, cases[i].size), cases[i].at);
        if ((kind == NULL) != (cases[i].kind == NULL) || (kind && strcmp(kind, cases[i].kind) != 0))
            fail_msg("case %zu: %s", i, kind ? kind : "nothing");
    }
}

/* Code that ends in the middle of a pattern is not that pattern, and nothing behind it is read. */
static void test_cut_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t size = 0; size < cases[i].size && cases[i].kind; size++) {
            AUTO_FREE uint8_t *exact = malloc(size ? size : 1);
            memcpy(exact, cases[i].bytes, size);
            const char *kind = stub_code_kind(span_of(exact, size), cases[i].at);
            if (kind && size <= cases[i].at)
                fail_msg("case %zu at %zu bytes: %s", i, size, kind);
        }
    assert_null(stub_code_kind((struct span){ 0 }, STUB_CODE_BEFORE));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_kinds), cmocka_unit_test(test_cut_code) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
