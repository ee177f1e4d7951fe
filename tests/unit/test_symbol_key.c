#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "fetch/symbol_key.h"
#include "fetch/symbol_servers.h"

#define ID20 "180a373d6afbabf0eb1f09be1bc45bd796a71085"

static const struct symbol_id pdb = {
    .kind = SYMBOL_PDB,
    .size = 20,
    .bytes = { 0x80, 0xaf, 0x9c, 0x49, 0x4c, 0x43, 0x0f, 0x4f, 0x84, 0xce,
               0xe9, 0xd5, 0x86, 0x6d, 0xad, 0xde, 1,    2,    3,    4 },
};

static void check_key(enum symbol_key key, const struct symbol_id *id, const char *name, const char *expected)
{
    struct buffer out;
    buffer_init(&out, 4096);
    buffer_u8(&out, '>');
    bool ok = symbol_key_put(key, id, name, &out);
    buffer_u8(&out, 0);
    if (ok != (expected != NULL) || strcmp((const char *)out.data + 1, expected ? expected : "") != 0)
        fail_msg("key %d of '%s': %d %s", (int)key, name, ok, (const char *)out.data);
    buffer_done(&out);
}

/* The examples of SSQP_Key_Conventions.md and of debuginfod(8), and what has no key. */
static void test_keys(void **state)
{
    (void)state;
    struct symbol_id whole = symbol_id_from_hex(ID20), part = symbol_id_from_hex("0123456789abcdef"),
                     few = symbol_id_from_hex("01234567");
    check_key(KEY_SSQP_SYMBOLS, &whole, "", "_.debug/elf-buildid-sym-" ID20 "/_.debug");
    check_key(KEY_SSQP_SYMBOLS, &part, "",
              "_.debug/elf-buildid-sym-0123456789abcdef000000000000000000000000/_.debug");
    check_key(KEY_SSQP_SYMBOLS, &few, "", NULL);
    check_key(KEY_SSQP_SYMBOLS, &pdb, "a.pdb", NULL);
    check_key(KEY_DEBUGINFOD, &whole, "", "buildid/" ID20 "/debuginfo");
    check_key(KEY_DEBUGINFOD, &part, "", "buildid/0123456789abcdef/debuginfo");
    check_key(KEY_DEBUGINFOD, &pdb, "a.pdb", NULL);
    check_key(KEY_SSQP_IMAGE, &whole, "libFoo.so", "libfoo.so/elf-buildid-" ID20 "/libfoo.so");
    check_key(KEY_SSQP_PDB, &pdb, "Foo.pdb",
              "foo.pdb/499caf80434c4f0f84cee9d5866dadde"
              "FFFFFFFF/foo.pdb");
    check_key(KEY_SSQP_PDB, &whole, "Foo.pdb", NULL);
}

/* Names are the target's: they must not lead elsewhere on the server. */
static void test_hostile_names(void **state)
{
    (void)state;
    struct symbol_id id = symbol_id_from_hex(ID20);
    char long_name[300];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    check_key(KEY_SSQP_IMAGE, &id, "", NULL);
    check_key(KEY_SSQP_IMAGE, &id, "..", NULL);
    check_key(KEY_SSQP_IMAGE, &id, "a/b", NULL);
    check_key(KEY_SSQP_IMAGE, &id, long_name, NULL);
    check_key(KEY_SSQP_IMAGE, &id, "a?b#c%\n\xc3",
              "a%3Fb%23c%25%0A%C3/elf-buildid-" ID20 "/a%3Fb%23c%25%0A%C3");
    check_key(KEY_SSQP_IMAGE, &id, "..\\x y", "..%5Cx%20y/elf-buildid-" ID20 "/..%5Cx%20y");
}

static void check_server(const struct symbol_servers *s, size_t i, const char *url, unsigned protocols)
{
    assert_true(i < s->count);
    assert_string_equal(s->rows[i].url, url);
    assert_int_equal(s->rows[i].protocols, protocols);
}

static void test_servers(void **state)
{
    (void)state;
    struct symbol_servers s = { 0 };
    struct error err;
    assert_true(symbol_servers_add(&s, "https://localhost/one//", PROTOCOL_SSQP, &err));
    symbol_servers_add_debuginfod(
        &s, " https://localhost/one  ima:enforcing http://localhost/two/ file:///etc\n");
    symbol_servers_add_symbol_path(
        &s, "srv*/var/cache*https://localhost/three;cache*/x;SRV*HTTP://localhost/four*;/dir");
    assert_int_equal(s.count, 4);
    check_server(&s, 0, "https://localhost/one", PROTOCOL_SSQP | PROTOCOL_DEBUGINFOD);
    check_server(&s, 1, "http://localhost/two", PROTOCOL_DEBUGINFOD);
    check_server(&s, 2, "https://localhost/three", PROTOCOL_SSQP);
    check_server(&s, 3, "HTTP://localhost/four", PROTOCOL_SSQP);
    symbol_servers_done(&s);
    symbol_servers_add_debuginfod(&s, "");
    symbol_servers_add_symbol_path(&s, "");
    assert_int_equal(s.count, 0);
}

static void test_bad_servers(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         "localhost",     "ftp://localhost",       "file:///etc/passwd",
        "https://", "https:///path", "https://localhost/a b", "http://localhost/a\nb"
    };
    struct symbol_servers s = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = { 0 };
        assert_false(symbol_servers_add(&s, bad[i], PROTOCOL_SSQP, &err));
        assert_int_equal(err.kind, ERROR_USAGE);
    }
    assert_true(symbol_servers_add(&s, "https://127:secret@localhost/x@y", PROTOCOL_SSQP, NULL));
    assert_string_equal(s.rows[0].url, "https://127:secret@localhost/x@y");
    assert_string_equal(s.rows[0].shown, "https://localhost/x@y");
    symbol_servers_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_servers),
        cmocka_unit_test(test_bad_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
