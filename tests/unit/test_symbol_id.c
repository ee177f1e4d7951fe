#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "golden_file.h"
#include "read/symbol_id.h"

static struct symbol_id id_of(const char *name)
{
    struct buffer bytes = golden_file_load(name);
    struct source file = source_over_span(buffer_span(&bytes));
    struct symbol_id id = { 0 };
    struct elf e;
    struct pe pe;
    struct pe_debug debug;
    if (elf_open(&file, &e, NULL)) {
        id = symbol_id_of_elf(&e);
        elf_done(&e);
    } else if (pe_read(&file, &pe, NULL) && pe_debug_read(&file, &pe, &debug, NULL)) {
        id = symbol_id_of_pdb(&debug);
    }
    buffer_done(&bytes);
    return id;
}

static bool check_span(const struct symbol_id *id, struct span bytes, struct error *err)
{
    struct source file = source_over_span(bytes);
    return symbol_id_check(id, &file, err);
}

static void test_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
    } cases[] = { { "", 0 },   { "00", 1 }, { "0123456789abcdef", 8 }, { "012", 0 }, { "ABCD", 0 },
                  { "zz", 0 }, { "0 ", 0 }, { "\xc3\xa9", 0 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct symbol_id id = symbol_id_from_hex(cases[i].text);
        char text[SYMBOL_ID_TEXT_BYTES];
        assert_int_equal(id.size, cases[i].size);
        symbol_id_text(&id, text);
        assert_string_equal(text, cases[i].size ? cases[i].text : "");
    }
    char longest[SYMBOL_ID_TEXT_BYTES + 2];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(symbol_id_from_hex(longest).size, 0);
    longest[sizeof longest - 3] = 0;
    assert_int_equal(symbol_id_from_hex(longest).size, ELF_BUILD_ID_MAX);
}

static const struct {
    const char *image, *symbols;
    const char *refused; /* why, or NULL */
} pairs[] = {
    { "elf/stripped.so", "elf/sample.debug", NULL },
    { "elf/stripped.so", "elf/sample.so", NULL }, /* one that was not stripped has them, too */
    { "elf/stripped.so", "elf/stripped.so", "it has no symbols" },
    { "elf/stripped.so", "elf/runtime.so", "it is of another build: " },
    { "elf/stripped.so", "pdb/Lines.pdb", "not an ELF file" },
    { "pdb/Lines.dll", "pdb/Lines.pdb", NULL },
    { "pdb/Embedded.dll", "pdb/Lines.pdb", "it is of another build: " },
    { "pdb/Lines.dll", "elf/sample.debug", "metadata without its signature" },
};

static void test_check(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct symbol_id id = id_of(pairs[i].image);
        struct buffer bytes = golden_file_load(pairs[i].symbols);
        struct error err = { 0 };
        bool ok = check_span(&id, buffer_span(&bytes), &err);
        if (ok != !pairs[i].refused || (!ok && strncmp(err.what, pairs[i].refused, strlen(pairs[i].refused))))
            fail_msg("%s for %s: %d %s", pairs[i].symbols, pairs[i].image, ok, err.what);
        buffer_done(&bytes);
    }
}

/* What a server sent in part must not be taken for the whole. */
static void test_cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        if (pairs[i].refused)
            continue;
        struct symbol_id id = id_of(pairs[i].image);
        struct buffer bytes = golden_file_load(pairs[i].symbols);
        for (size_t size = 0; size < bytes.size; size++) {
            AUTO_FREE uint8_t *part = mem_alloc(size + 1, 1);
            memcpy(part, bytes.data, size);
            if (check_span(&id, span_of(part, size), NULL))
                fail_msg("%s cut at %zu of %zu", pairs[i].symbols, size, bytes.size);
        }
        buffer_done(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_cut_at_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
