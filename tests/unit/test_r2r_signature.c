#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "read/r2r_signature.h"

static const struct {
    const char *name;
    uint8_t bytes[16];
    uint8_t size;
    bool ok;
    struct r2r_method_signature wanted; /* of spans only the size counts */
} cases[] = {
    { "List<__Canon>.Add",
      { 0x40, 0x15, 0x12, 0x09, 0x01, 0x3e, 0x21 },
      7,
      true,
      { .owner = { NULL, 5 }, .row = 0x21 } },
    { "M<int, T[,]>",
      { 0x04, 0x05, 0x02, 0x08, 0x14, 0x1e, 0x00, 0x02, 0x00, 0x00 },
      10,
      true,
      { .row = 5, .argument_count = 2, .arguments = { NULL, 7 } } },
    { "of another module", { 0x80, 0x80, 0x03, 0x07 }, 4, true, { .module = 3, .row = 7 } },
    { "a MemberRef", { 0x10, 0x81, 0x00 }, 3, true, { .is_member_ref = true, .row = 0x100 } },
    { "of a function pointer",
      { 0x04, 0x05, 0x01, 0x1b, 0x00, 0x01, 0x01, 0x08 },
      8,
      true,
      { .row = 5, .argument_count = 1, .arguments = { NULL, 5 } } },
    { "a constraint", { 0x20, 0x05, 0x08 }, 3, true, { .row = 5 } },
    { "awaited", { 0x81, 0x00, 0x05 }, 3, true, { .row = 5, .is_awaited = true } },
    { "a slot", { 0x08, 0x05 }, 2, false, { 0 } },
};

static bool read_bytes(struct span bytes, struct r2r_method_signature *out, size_t *out_used)
{
    struct cursor c = cursor_over(bytes);
    bool ok = cursor_r2r_method_signature(&c, out);
    *out_used = c.pos;
    return ok;
}

static void test_signatures(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct r2r_method_signature *wanted = &cases[i].wanted;
        struct r2r_method_signature sig;
        size_t used;
        bool ok = read_bytes(span_of(cases[i].bytes, cases[i].size), &sig, &used);
        if (ok != cases[i].ok)
            fail_msg("%s: %d", cases[i].name, ok);
        if (ok &&
            (used != cases[i].size || sig.module != wanted->module || sig.is_awaited != wanted->is_awaited ||
             sig.row != wanted->row || sig.is_member_ref != wanted->is_member_ref ||
             sig.owner.size != wanted->owner.size || sig.argument_count != wanted->argument_count ||
             sig.arguments.size != wanted->arguments.size))
            fail_msg("%s: row %u of module %u, owner of %zu bytes, arguments of %zu, %zu bytes read",
                     cases[i].name, sig.row, sig.module, sig.owner.size, sig.arguments.size, used);
    }
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t size = 0; size < cases[i].size; size++) {
            AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
            struct r2r_method_signature sig;
            size_t used;
            memcpy(cut, cases[i].bytes, size);
            if (read_bytes(span_of(cut, size), &sig, &used))
                fail_msg("%s, cut at %zu", cases[i].name, size);
        }
}

/* Every entry of a table may name the same signature: one must not be as long as the table. */
static void test_too_long(void **state)
{
    (void)state;
    enum { ARGUMENTS = 1 << 20 };
    AUTO_FREE uint8_t *bytes = malloc(6 + ARGUMENTS);
    struct r2r_method_signature sig;
    size_t used;
    memcpy(bytes, (uint8_t[]){ 0x04, 0x05, 0xc0, 0x10, 0x00, 0x00 }, 6);
    memset(bytes + 6, 0x08, ARGUMENTS);
    assert_false(read_bytes(span_of(bytes, 6 + ARGUMENTS), &sig, &used));
    assert_in_range(used, 0, 1 << 16);
    /* nested without end */
    memset(bytes + 3, 0x1d, ARGUMENTS);
    bytes[2] = 1;
    assert_false(read_bytes(span_of(bytes, 6 + ARGUMENTS), &sig, &used));
    assert_in_range(used, 0, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
