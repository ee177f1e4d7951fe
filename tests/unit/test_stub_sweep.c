#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/stub_sweep.h"

enum { BASE = 0x10000, CODE_BYTES = 200 << 10 };

/* Memory of one mapping, of which the bytes from `hole` on cannot be read. */
struct code {
    uint8_t *bytes;
    size_t hole;
};

static void read_code(void *user, struct memory_piece *pieces, size_t count)
{
    const struct code *code = user;
    for (size_t i = 0; i < count; i++) {
        size_t at = pieces[i].addr - BASE;
        pieces[i].got = at >= code->hole                   ? 0
                        : code->hole - at < pieces[i].size ? code->hole - at
                                                           : pieces[i].size;
        memcpy(pieces[i].into, code->bytes + at, pieces[i].got);
    }
}

static const uint8_t vtable_stub[] = { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x40, 0x40, 0xff, 0x60, 0x20 };
static const uint8_t lookup_stub[] = { 0x50, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 0, 0, 0xff, 0xe0 };

struct found {
    struct {
        uint64_t begin, end;
        const char *kind;
    } rows[8];
    size_t count;
};

static void keep(void *user, uint64_t begin, uint64_t end, const char *kind)
{
    struct found *found = user;
    assert_true(found->count < ARRAY_LEN(found->rows));
    found->rows[found->count].begin = begin - BASE;
    found->rows[found->count].end = end - BASE;
    found->rows[found->count++].kind = kind;
}

static void sweep(struct code *code, uint64_t begin, uint64_t end, struct found *out)
{
    struct memory memory = { .read = read_code, .user = code };
    *out = (struct found){ .count = 0 };
    stub_sweep(&memory, BASE + begin, BASE + end, keep, out);
}

static void put(struct code *code, size_t at, const void *bytes, size_t size)
{
    memcpy(code->bytes + at, bytes, size);
}

static void test_runs(void **state)
{
    (void)state;
    struct code code = { calloc(1, CODE_BYTES), CODE_BYTES };
    struct found found;
    put(&code, 0x100, vtable_stub, sizeof vtable_stub);
    put(&code, 0x110, vtable_stub, sizeof vtable_stub); /* a neighbour */
    put(&code, 0x120, lookup_stub, sizeof lookup_stub);
    put(&code, 0x800, lookup_stub, sizeof lookup_stub); /* far away */
    size_t across = (64 << 10) - 5;                     /* from one read into the next */
    put(&code, across, vtable_stub, sizeof vtable_stub);
    sweep(&code, 0, CODE_BYTES, &found);
    assert_int_equal(found.count, 4);
    assert_int_equal(found.rows[0].begin, 0x100);
    assert_int_equal(found.rows[0].end, 0x110 + sizeof vtable_stub);
    assert_string_equal(found.rows[0].kind, "[vtable call stub]");
    assert_int_equal(found.rows[1].begin, 0x120);
    assert_string_equal(found.rows[1].kind, "[lookup stub]");
    assert_int_equal(found.rows[2].begin, 0x800);
    assert_int_equal(found.rows[3].begin, across);
    assert_int_equal(found.rows[3].end, across + sizeof vtable_stub);
    free(code.bytes);
}

/* A stub that the range or the memory cuts is none. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof vtable_stub; cut++) {
        struct code code = { calloc(1, CODE_BYTES), CODE_BYTES };
        struct found found;
        put(&code, 0x100, vtable_stub, sizeof vtable_stub);
        sweep(&code, 0, 0x100 + cut, &found);
        assert_int_equal(found.count, 0);
        code.hole = 0x100 + cut;
        sweep(&code, 0, CODE_BYTES, &found);
        assert_int_equal(found.count, 0);
        free(code.bytes);
    }
}

static void test_nothing(void **state)
{
    (void)state;
    struct code code = { calloc(1, CODE_BYTES), 0 };
    struct found found;
    sweep(&code, 0, CODE_BYTES, &found);
    assert_int_equal(found.count, 0);
    sweep(&code, 16, 16, &found);
    assert_int_equal(found.count, 0);
    free(code.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
