#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "clr/method_name.h"
#include "read/pe.h"
#include "symbolize/managed_image.h"

enum { FILE_BYTES_MAX = 1 << 20 };

struct fixture {
    struct buffer dll, names;
};

static void load(const char *path, struct buffer *into)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct source file;
    buffer_init(into, FILE_BYTES_MAX);
    assert_true(fd >= 0);
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &file, NULL));
    assert_true(source_load(&file, 0, file.size, into, NULL));
}

static int open_fixture(void **state, const char *dll)
{
    static struct fixture fixture;
    load(dll, &fixture.dll);
    load(GOLDEN_DIR "/r2r/tiny/names.txt", &fixture.names);
    *state = &fixture;
    return 0;
}

static int open_x64(void **state)
{
    return open_fixture(state, GOLDEN_DIR "/r2r/tiny/tiny.dll");
}

/* The same program for another machine: equal names at other places. */
static int open_arm64(void **state)
{
    return open_fixture(state, GOLDEN_DIR "/r2r/tiny/tiny-arm64.dll");
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    buffer_done(&fixture->dll);
    buffer_done(&fixture->names);
    return 0;
}

static struct managed_image *open_tiny(const struct fixture *fixture)
{
    struct source file = source_over_span(buffer_span(&fixture->dll));
    struct managed_image *image;
    struct error err;
    if (!managed_image_open(&file, NULL, NULL, &image, &err))
        fail_msg("%s", err.what);
    return image;
}

static void test_identity(void **state)
{
    struct managed_image *image = open_tiny(*state);
    assert_string_equal(managed_image_name(image), "tiny");
    assert_int_equal(strlen(managed_image_mvid(image)), 32);
    assert_true(managed_image_has_code(image));
    managed_image_close(image);
}

/* One line per method: where its first function is, and what it is called. */
static void list_names(struct managed_image *image, struct buffer *out)
{
    char last[512] = "";
    for (uint32_t f = 0; f < managed_image_function_count(image); f++) {
        struct code_name name;
        struct method_range range;
        assert_true(managed_image_function(image, f, &name, &range));
        assert_true(range.begin_rva < range.end_rva && range.begin_off != 0);
        assert_string_equal(name.module, "tiny");
        assert_int_equal(name.kind, CODE_R2R);
        assert_int_equal(name.tier, TIER_R2R);
        if (strcmp(name.name, last) == 0)
            continue; /* a funclet */
        snprintf(last, sizeof last, "%s", name.name);
        buffer_format(out, "%u\t%s\t%s\t", f, name.name, name.type_params);
        method_name_show(span_of(name.name, strlen(name.name)), name.type_params, out);
        buffer_u8(out, '\n');
    }
}

static void test_names(void **state)
{
    const struct fixture *fixture = *state;
    struct managed_image *image = open_tiny(fixture);
    struct buffer names;
    buffer_init(&names, FILE_BYTES_MAX);
    list_names(image, &names);
    bool same = span_equals(buffer_span(&names), buffer_span(&fixture->names));
    for (size_t at = 0; !same && at < names.size; at++) /* what they are now, to compare or to keep */
        print_message("%c", names.data[at]);
    buffer_done(&names);
    managed_image_close(image);
    assert_true(same);
}

/* Every byte of the file: in a method's range, a thunk, or no code; ranges agree with names. */
static void test_every_offset(void **state)
{
    const struct fixture *fixture = *state;
    struct managed_image *image = open_tiny(fixture);
    unsigned methods = 0, stubs = 0, thunks = 0;
    for (uint64_t off = 0; off < fixture->dll.size; off++) {
        struct code_name name;
        uint64_t begin, end;
        if (!managed_image_find(image, off, &name))
            continue;
        if (name.kind == CODE_STUB) {
            thunks += strcmp(name.name, "[R2R delay-load thunk]") == 0;
            stubs++;
            assert_false(managed_image_method_range(image, off, &begin, &end));
            continue;
        }
        assert_true(managed_image_method_range(image, off, &begin, &end));
        assert_true(begin <= off && off < end);
        methods += off == begin;
    }
    assert_int_equal(methods, 32);
    assert_true(stubs > thunks && thunks > 0);
    struct code_name name;
    assert_false(managed_image_find(image, fixture->dll.size, &name));
    assert_false(managed_image_find(image, UINT64_MAX, &name));
    managed_image_close(image);
}

static void test_type_params_of_tokens(void **state)
{
    struct managed_image *image = open_tiny(*state);
    unsigned found = 0;
    for (uint32_t row = 1; row < 64; row++)
        found += strcmp(managed_image_type_params(image, 0x06000000 | row), "T,U;V") == 0;
    assert_int_equal(found, 1);
    assert_string_equal(managed_image_type_params(image, 0x06ffffff), "");
    assert_string_equal(managed_image_type_params(image, 0x06000000), "");
    assert_string_equal(managed_image_type_params(image, 0x02000001), "");
    managed_image_close(image);
}

/* Nothing opens that names a method beyond what is there, and nothing is read behind the cut. */
static void test_cut_anywhere(void **state)
{
    const struct fixture *fixture = *state;
    unsigned opened = 0;
    for (size_t size = 0; size < fixture->dll.size; size++) {
        AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
        memcpy(cut, fixture->dll.data, size);
        struct source file = source_over_span(span_of(cut, size));
        struct managed_image *image = NULL;
        struct error err = { 0 };
        if (!managed_image_open(&file, NULL, NULL, &image, &err)) {
            assert_null(image);
            assert_true(err.what[0] != 0);
            continue;
        }
        opened++;
        managed_image_close(image);
    }
    assert_true(opened < fixture->dll.size / 2);
}

static void test_il_only(void **state)
{
    const struct fixture *fixture = *state;
    struct buffer copy;
    buffer_init(&copy, FILE_BYTES_MAX);
    buffer_append(&copy, fixture->dll.data, fixture->dll.size);
    struct source file = source_over_span(buffer_span(&copy));
    struct pe pe;
    uint64_t cli_off;
    assert_true(pe_read(&file, &pe, NULL));
    assert_true(pe_file_offset(&pe, pe.directories[PE_DIRECTORY_CLI].rva, 72, &cli_off));
    memset(copy.data + cli_off + 64, 0, 8); /* no native header */
    struct managed_image *image;
    assert_true(managed_image_open(&file, NULL, NULL, &image, NULL));
    assert_string_equal(managed_image_name(image), "tiny");
    assert_false(managed_image_has_code(image));
    struct code_name name;
    assert_false(managed_image_find(image, fixture->dll.size / 2, &name));
    managed_image_close(image);
    buffer_done(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_every_offset), cmocka_unit_test(test_type_params_of_tokens),
        cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_il_only),
    };
    return cmocka_run_group_tests(tests, open_x64, close_fixture) +
           cmocka_run_group_tests_name("arm64", tests, open_arm64, close_fixture);
}
