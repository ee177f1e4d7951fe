#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/source.h"
#include "golden_file.h"
#include "read/debug_line.h"

enum { ADDRS_MAX = 512, PATH_MAX_BYTES = 64 };

/* What addr2line says of every address. */
struct golden {
    uint64_t addrs[ADDRS_MAX];
    struct place {
        char file[PATH_MAX_BYTES];
        uint32_t line;
    } places[ADDRS_MAX];
    size_t count;
};
static struct golden golden;

static const struct {
    const char *name, *strings;
    bool has_folder; /* of the compiler */
} samples[] = { { "dwarf/v2.line", NULL, false },
                { "dwarf/v4.line", NULL, false },
                { "dwarf/v5.line", "dwarf/v5.line_str", true } };

static int read_golden(void **state)
{
    (void)state;
    AUTO_FREE char *path = mem_format("%s/dwarf/lines.txt", GOLDEN_DIR);
    FILE *file = fopen(path, "re");
    struct golden *g = &golden;
    while (file && g->count < ADDRS_MAX &&
           fscanf(file, "%" SCNx64 " %63[^:]:%" SCNu32 " ", &g->addrs[g->count], g->places[g->count].file,
                  &g->places[g->count].line) == 3)
        g->count++;
    if (file)
        fclose(file);
    return g->count > 50 ? 0 : -1;
}

/* Answers by index. */
struct answers {
    struct place places[ADDRS_MAX];
    size_t count;
};

static void take(void *user, size_t index, const char *file, uint32_t line)
{
    struct answers *answers = user;
    struct place *place = &answers->places[index];
    if (place->line)
        fail_msg("answered twice");
    snprintf(place->file, sizeof place->file, "%s", file);
    place->line = line;
    answers->count++;
}

/* Without the compiler's folder a path stays as it was given. */
static bool is_right(const struct place *got, const struct place *wanted, bool has_folder)
{
    static const char folder[] = "/src/";
    size_t skip =
        !has_folder && strncmp(wanted->file, folder, sizeof folder - 1) == 0 ? sizeof folder - 1 : 0;
    return got->line == wanted->line && strcmp(got->file, wanted->file + skip) == 0;
}

static void test_every_address(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct buffer lines = golden_file_load(samples[s].name);
        struct buffer strings = { 0 };
        struct answers *answers = mem_alloc(1, sizeof *answers);
        struct error err;
        if (samples[s].strings)
            strings = golden_file_load(samples[s].strings);
        struct debug_line_sections sections = { elf_bytes_over_span(buffer_span(&lines)),
                                                buffer_span(&strings) };
        if (!debug_line_find(&sections, NULL, 0, golden.addrs, golden.count, take, answers, &err))
            fail_msg("%s: %s", samples[s].name, err.what);
        assert_int_equal(answers->count, golden.count);
        for (size_t i = 0; i < golden.count; i++)
            if (!is_right(&answers->places[i], &golden.places[i], samples[s].has_folder))
                fail_msg("%s at 0x%" PRIx64 ": %s:%u, not %s:%u", samples[s].name, golden.addrs[i],
                         answers->places[i].file, answers->places[i].line, golden.places[i].file,
                         golden.places[i].line);
        free(answers);
        buffer_done(&lines);
        buffer_done(&strings);
    }
}

static void test_elsewhere(void **state)
{
    (void)state;
    static const uint64_t addrs[] = { 0, 4, 0x400fff, 0x402000, UINT64_MAX };
    struct buffer lines = golden_file_load("dwarf/v4.line");
    struct answers *answers = mem_alloc(1, sizeof *answers);
    struct debug_line_sections sections = { .line = elf_bytes_over_span(buffer_span(&lines)) };
    assert_true(debug_line_find(&sections, NULL, 0, addrs, ARRAY_LEN(addrs), take, answers, NULL));
    assert_int_equal(answers->count, 0);
    free(answers);
    buffer_done(&lines);
}

/* A unit that is not whole says nothing. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct buffer lines = golden_file_load(samples[s].name);
        for (size_t size = 1; size < lines.size; size++) {
            AUTO_FREE uint8_t *part = mem_alloc(size, 1);
            struct answers *answers = mem_alloc(1, sizeof *answers);
            memcpy(part, lines.data, size);
            struct debug_line_sections sections = { .line = elf_bytes_over_span(span_of(part, size)) };
            if (debug_line_find(&sections, NULL, 0, golden.addrs, golden.count, take, answers, NULL) ||
                answers->count)
                fail_msg("%s cut at %zu", samples[s].name, size);
            free(answers);
        }
        buffer_done(&lines);
    }
}

/* A table of version 5 of 2^56 rows. */
static void check_endless(struct span unit)
{
    struct answers *answers = mem_alloc(1, sizeof *answers);
    struct debug_line_sections sections = { .line = elf_bytes_over_span(unit) };
    assert_true(debug_line_find(&sections, NULL, 0, golden.addrs, golden.count, take, answers, NULL));
    assert_int_equal(answers->count, 0);
    free(answers);
}

static void test_endless_table(void **state)
{
    (void)state;
    static const uint8_t no_columns[] = {
        35, 0, 0, 0, 5, 0, 8, 0, 25, 0, 0, 0,    1,    1,    1,    0xfb, 14,   13,   0,   1,
        1,  1, 1, 0, 0, 0, 1, 0, 0,  1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f
    };
    /* one column, in a form without bytes; the table does not end the unit */
    static const uint8_t no_bytes[] = { 38,   0,    0,    0,    5,    0,    8,    0,    25, 0, 0,
                                        0,    1,    1,    1,    0xfb, 14,   13,   0,    1,  1, 1,
                                        1,    0,    0,    0,    1,    0,    0,    1,    1,  1, 0x19,
                                        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0 };
    check_endless(span_of(no_columns, sizeof no_columns));
    check_endless(span_of(no_bytes, sizeof no_bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_address),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_endless_table),
    };
    return cmocka_run_group_tests(tests, read_golden, NULL);
}
