#include <fcntl.h>
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
#include "read/il_map.h"
#include "read/portable_pdb.h"
#include "symbolize/managed_image.h"
#include "symbolize/source_lines.h"

enum { FILE_BYTES_MAX = 1 << 16, SUM = 0x06000001, GENERATED = 0x06000002, NOTHING = 0x06000003 };

/* What the process sees: files by path. */
struct seen_file {
    const char *path;
    struct buffer bytes;
};
static struct seen_file golden[] = { { .path = "Lines.dll" },
                                     { .path = "Lines.pdb" },
                                     { .path = "Embedded.dll" } };

static int open_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(golden); i++) {
        AUTO_FREE char *path = mem_format("%s/pdb/%s", GOLDEN_DIR, golden[i].path);
        AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct source file;
        buffer_init(&golden[i].bytes, FILE_BYTES_MAX);
        if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) ||
            !source_load(&file, 0, file.size, &golden[i].bytes, NULL))
            return -1;
    }
    return 0;
}

static int close_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(golden); i++)
        buffer_done(&golden[i].bytes);
    return 0;
}

struct view {
    struct {
        const char *path;
        struct span bytes;
    } files[4];
    unsigned opened, closed;
};

static bool view_open(void *user, const char *path, struct source *out)
{
    struct view *view = user;
    for (size_t i = 0; i < ARRAY_LEN(view->files); i++)
        if (view->files[i].path && strcmp(view->files[i].path, path) == 0) {
            *out = source_over_span(view->files[i].bytes);
            view->opened++;
            return true;
        }
    return false;
}

static void view_close(void *user, struct source *file)
{
    (void)file;
    ((struct view *)user)->closed++;
}

static void check_place(struct view *view, const char *path, uint32_t token, uint32_t il_offset,
                        const char *file, uint32_t line, bool of_method)
{
    struct pdb_finder find = { .files = { view_open, view_close, view } };
    struct source_lines *lines = source_lines_new(&find);
    struct source_place place = { 0 };
    bool found = source_lines_find(lines, path, token, il_offset, &place);
    if (found != (file != NULL))
        fail_msg("%s 0x%x at %u: %s", path, token, il_offset, found ? "found" : "not found");
    if (found && (strcmp(place.file, file) != 0 || place.line != line || place.of_method != of_method))
        fail_msg("%s 0x%x at %u: %s:%u", path, token, il_offset, place.file, place.line);
    source_lines_free(lines);
    assert_int_equal(view->opened, view->closed);
}

static void test_lines(void **state)
{
    (void)state;
    static const char source[] = "/src/Lines.cs";
    static const struct {
        uint32_t token, il_offset;
        const char *file;
        uint32_t line;
        bool of_method;
    } cases[] = {
        { SUM, 0, source, 9, false },
        { SUM, IL_PROLOG, source, 9, false },
        { SUM, IL_NO_MAPPING, source, 9, true },
        { SUM, 1000, source, 18, false },
        { GENERATED, 0, source, 23, false },
        { GENERATED, 2, "/src/Generated.y", 700, false },
        { NOTHING, 0, NULL, 0, false },    /* abstract: no body */
        { 0x06000000, 0, NULL, 0, false }, /* no row */
        { 0x06ffffff, 0, NULL, 0, false }, /* no such row */
        { 0x0a000001, 0, NULL, 0, false }, /* no method */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct view beside = { .files = { { "/app/Lines.dll", buffer_span(&golden[0].bytes) },
                                          { "/app/Lines.pdb", buffer_span(&golden[1].bytes) } } };
        struct view inside = { .files = { { "/app/Embedded.dll", buffer_span(&golden[2].bytes) } } };
        check_place(&beside, "/app/Lines.dll", cases[i].token, cases[i].il_offset, cases[i].file,
                    cases[i].line, cases[i].of_method);
        check_place(&inside, "/app/Embedded.dll", cases[i].token, cases[i].il_offset, cases[i].file,
                    cases[i].line, cases[i].of_method);
    }
}

static void test_not_its_pdb(void **state)
{
    (void)state;
    struct span dll = buffer_span(&golden[0].bytes), pdb = buffer_span(&golden[1].bytes);
    struct view none = { .files = { { "/app/Lines.dll", dll } } };
    check_place(&none, "/app/Lines.dll", SUM, 0, NULL, 0, false);
    check_place(&none, "/app/Other.dll", SUM, 0, NULL, 0, false);
    struct view is_dll = { .files = { { "/app/Lines.dll", dll }, { "/app/Lines.pdb", dll } } };
    check_place(&is_dll, "/app/Lines.dll", SUM, 0, NULL, 0, false);
    /* of another build: one bit of its id differs */
    struct portable_pdb opened;
    assert_true(portable_pdb_open(pdb, &opened, NULL));
    AUTO_FREE uint8_t *other = mem_alloc(pdb.size, 1);
    memcpy(other, pdb.data, pdb.size);
    other[portable_pdb_id(&opened).data - pdb.data + 19] ^= 1;
    struct view stale = { .files = { { "/app/Lines.dll", dll },
                                     { "/app/Lines.pdb", span_of(other, pdb.size) } } };
    check_place(&stale, "/app/Lines.dll", SUM, 0, NULL, 0, false);
    /* renamed with its assembly: the PDB's name is the assembly's own then */
    struct view renamed = { .files = { { "/app/New.dll", dll }, { "/app/New.pdb", pdb } } };
    check_place(&renamed, "/app/New.dll", SUM, 0, "/src/Lines.cs", 9, false);
}

/* Each file of another, damaged, is read without harm, and never gives a line that is not there. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(golden); i++) {
        struct span whole = buffer_span(&golden[i].bytes);
        for (size_t size = 0; size < whole.size; size++) {
            AUTO_FREE uint8_t *part = mem_alloc(size + 1, 1);
            memcpy(part, whole.data, size);
            struct span cut = span_of(part, size);
            struct view view = { .files = { { "/Lines.dll", i == 0 ? cut : buffer_span(&golden[0].bytes) },
                                            { "/Lines.pdb", i == 1 ? cut : buffer_span(&golden[1].bytes) },
                                            { "/Embedded.dll", cut } } };
            struct pdb_finder find = { .files = { view_open, view_close, &view } };
            struct source_lines *lines = source_lines_new(&find);
            struct source_place place;
            if (source_lines_find(lines, i == 2 ? "/Embedded.dll" : "/Lines.dll", SUM, 0, &place) &&
                (place.line != 9 || strcmp(place.file, "/src/Lines.cs") != 0))
                fail_msg("%s cut at %zu: %s:%u", golden[i].path, size, place.file, place.line);
            source_lines_free(lines);
        }
    }
}

/* Every byte of Sum()'s precompiled code is of one of its lines, and all that run often have code. */
static void test_precompiled(void **state)
{
    (void)state;
    struct source file = source_over_span(buffer_span(&golden[2].bytes));
    struct managed_image *image;
    bool seen[40] = { false };
    assert_true(managed_image_open(&file, NULL, NULL, &image, NULL));
    assert_true(managed_image_load_il_maps(image, &file, NULL));
    struct view view = { .files = { { "/Embedded.dll", buffer_span(&golden[2].bytes) } } };
    struct pdb_finder find = { .files = { view_open, view_close, &view } };
    struct source_lines *lines = source_lines_new(&find);
    for (uint64_t off = 0; off < file.size; off++) {
        struct code_name name;
        struct method_il il;
        struct source_place place;
        if (!managed_image_find(image, off, &name) || !managed_image_il(image, &il) || il.token != SUM)
            continue;
        assert_string_equal(il.assembly, "Lines");
        assert_true(il.offset_known);
        assert_true(source_lines_find(lines, "/Embedded.dll", il.token, il.offset, &place));
        assert_true(place.line >= 9 && place.line <= 19);
        seen[place.line] |= !place.of_method;
    }
    /* sum = 0, foreach, if, throw, +=, return */
    assert_true(seen[9] && seen[10] && seen[12] && seen[13] && seen[16] && seen[18]);
    assert_false(seen[11] || seen[14] || seen[15] || seen[17]);
    source_lines_free(lines);
    managed_image_close(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_not_its_pdb),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_precompiled),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
