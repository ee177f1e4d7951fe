#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/source.h"
#include "read/portable_pdb.h"

enum { PDB_BYTES_MAX = 1 << 16, SUM = 1, GENERATED = 2 };

static int open_golden(void **state)
{
    static struct buffer bytes;
    AUTO_FD int fd = open(GOLDEN_DIR "/pdb/Lines.pdb", O_RDONLY | O_CLOEXEC);
    struct source file;
    buffer_init(&bytes, PDB_BYTES_MAX);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) ||
        !source_load(&file, 0, file.size, &bytes, NULL))
        return -1;
    *state = &bytes;
    return 0;
}

static int close_golden(void **state)
{
    buffer_done(*state);
    return 0;
}

/* The lines that some IL offset of a method leads to, in the order of the offsets. */
static size_t lines_of(const struct portable_pdb *pdb, uint32_t row, struct pdb_line *out, size_t max)
{
    size_t count = 0;
    for (uint32_t il = 0; il < 64; il++) {
        struct pdb_line line;
        if (portable_pdb_find(pdb, row, il, &line) && count < max &&
            (count == 0 || out[count - 1].line != line.line))
            out[count++] = line;
    }
    return count;
}

static void check_lines(const struct portable_pdb *pdb, uint32_t row, const uint32_t *wanted, size_t count)
{
    struct pdb_line lines[16];
    size_t got = lines_of(pdb, row, lines, ARRAY_LEN(lines));
    for (size_t i = 0; i < got && i < count; i++)
        if (lines[i].line != wanted[i])
            fail_msg("line %zu of method %u is %u, not %u", i, row, lines[i].line, wanted[i]);
    assert_int_equal(got, count);
}

static void test_lines(void **state)
{
    struct portable_pdb pdb;
    assert_true(portable_pdb_open(buffer_span(*state), &pdb, NULL));
    assert_int_equal(portable_pdb_id(&pdb).size, 20);
    /* sum = 0, numbers, the loop's head, if, throw, +=, the loop's step and head, return */
    static const uint32_t sum[] = { 9, 10, 12, 13, 16, 10, 18 };
    check_lines(&pdb, SUM, sum, ARRAY_LEN(sum));
    static const uint32_t generated[] = { 23, 700, 27 };
    check_lines(&pdb, GENERATED, generated, ARRAY_LEN(generated));
}

static void test_documents(void **state)
{
    struct portable_pdb pdb;
    struct pdb_line lines[16];
    struct buffer path;
    assert_true(portable_pdb_open(buffer_span(*state), &pdb, NULL));
    buffer_init(&path, PDB_BYTES_MAX);
    assert_int_equal(lines_of(&pdb, GENERATED, lines, ARRAY_LEN(lines)), 3);
    assert_true(portable_pdb_document(&pdb, lines[0].document, &path));
    assert_true(span_equals(buffer_span(&path), span_of("/src/Lines.cs", 13)));
    assert_true(portable_pdb_document(&pdb, lines[1].document, &path));
    assert_true(span_equals(buffer_span(&path), span_of("/src/Generated.y", 16)));
    assert_false(portable_pdb_document(&pdb, 0, &path));
    assert_false(portable_pdb_document(&pdb, 1000, &path));
    buffer_done(&path);
}

/* Cut anywhere it gives no line that the whole does not give. */
static void test_cut(void **state)
{
    struct span whole = buffer_span(*state);
    struct portable_pdb pdb;
    for (size_t size = 0; size < whole.size; size++) {
        struct pdb_line line;
        if (portable_pdb_open(span_part(whole, 0, size), &pdb, NULL) &&
            portable_pdb_find(&pdb, SUM, 0, &line) && line.line != 9)
            fail_msg("cut at %zu: line %u", size, line.line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
