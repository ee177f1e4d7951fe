#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "bundle_fixture.h"
#include "read/bundle.h"
#include "read/bundled_file.h"

enum { FILE_BYTES_MAX = 4 << 20, HOST_BYTES = 100 };

/* Host bytes with the marker, two files of 50 and 30 bytes, the directory. */
static void build(struct buffer *file, uint32_t major, size_t host_bytes)
{
    buffer_init(file, FILE_BYTES_MAX);
    uint8_t *host = buffer_reserve(file, host_bytes);
    memset(host, 'h', host_bytes);
    file->size = host_bytes;
    bundle_fixture_mark(file, host_bytes + 8 + 32 + 80);
    for (int i = 0; i < 80; i++)
        buffer_u8(file, 'f');
    buffer_u32le(file, major);
    buffer_u32le(file, 0);
    buffer_u32le(file, 2);
    buffer_varuint(file, strlen("an id"));
    buffer_string(file, "an id");
    if (major >= 2)
        for (int i = 0; i < 5; i++)
            buffer_u64le(file, 0);
    bundle_fixture_entry(file, major, host_bytes + 40 + 50, 30, 0, "sub/B.dll");
    bundle_fixture_entry(file, major, host_bytes + 40, 50, 0, "A.dll");
}

static void test_versions(void **state)
{
    (void)state;
    static const uint32_t majors[] = { 1, 2, 6 };
    for (size_t i = 0; i < ARRAY_LEN(majors); i++) {
        struct buffer file;
        build(&file, majors[i], HOST_BYTES);
        struct source source = source_over_span(buffer_span(&file));
        struct bundle *bundle;
        struct error err;
        if (!bundle_open(&source, &bundle, &err))
            fail_msg("version %u: %s", majors[i], err.what);
        assert_int_equal(bundle_count(bundle), 2);
        assert_string_equal(bundle_at(bundle, 0)->path, "A.dll");
        assert_null(bundle_find(bundle, HOST_BYTES + 39));
        assert_string_equal(bundle_find(bundle, HOST_BYTES + 40)->path, "A.dll");
        assert_string_equal(bundle_find(bundle, HOST_BYTES + 89)->path, "A.dll");
        assert_string_equal(bundle_find(bundle, HOST_BYTES + 90)->path, "sub/B.dll");
        assert_null(bundle_find(bundle, HOST_BYTES + 120));
        assert_null(bundle_find(bundle, UINT64_MAX));
        assert_int_equal(bundle_find_path(bundle, "sub/B.dll")->size_bytes, 30);
        assert_int_equal(bundle_find_path(bundle, "sub/B.dll")->kind, BUNDLE_ASSEMBLY);
        assert_null(bundle_find_path(bundle, "B.dll"));
        bundle_close(bundle);
        buffer_done(&file);
    }
}

/* Wherever the marker lies, also across the border of two reads. */
static void test_marker_anywhere(void **state)
{
    (void)state;
    for (size_t host_bytes = (1 << 20) - 80; host_bytes < (1 << 20) + 40; host_bytes++) {
        struct buffer file;
        struct bundle *bundle;
        build(&file, 6, host_bytes);
        struct source source = source_over_span(buffer_span(&file));
        if (!bundle_open(&source, &bundle, NULL))
            fail_msg("host of %zu bytes", host_bytes);
        bundle_close(bundle);
        buffer_done(&file);
    }
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    struct buffer file;
    build(&file, 6, HOST_BYTES);
    for (size_t size = 0; size < file.size; size++) {
        AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
        memcpy(cut, file.data, size);
        struct source source = source_over_span(span_of(cut, size));
        struct bundle *bundle;
        struct error err;
        assert_false(bundle_open(&source, &bundle, &err));
        if (size < HOST_BYTES + 40)
            assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    }
    buffer_done(&file);
}

static void test_damaged(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t at; /* behind the host */
        uint8_t byte;
    } damages[] = {
        { "a directory outside the file", 3, 0xff },
        { "version 0", 120, 0 },
        { "version 7", 120, 7 },
        { "more files than fit", 128, 0xff },
        { "an entry outside the file", 120 + 12 + 6 + 40 + 3, 0xff },
        { "an entry longer than the file", 120 + 12 + 6 + 40 + 8 + 2, 0xff },
    };
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        struct buffer file;
        struct bundle *bundle;
        build(&file, 6, HOST_BYTES);
        file.data[HOST_BYTES + damages[i].at] = damages[i].byte;
        struct source source = source_over_span(buffer_span(&file));
        if (bundle_open(&source, &bundle, NULL))
            fail_msg("%s", damages[i].what);
        buffer_done(&file);
    }
}

/* Compressed files, and others: what a file's path leads to is the file. */

enum { CONTENT_BYTES = 300000 };

static struct span make_content(uint8_t *content)
{
    for (size_t i = 0; i < CONTENT_BYTES; i++)
        content[i] = (uint8_t)(i * i >> 7);
    return span_of(content, CONTENT_BYTES);
}

static int open_program(void *user, const char *path)
{
    const struct buffer *file = user;
    if (strcmp(path, "/srv/shop") != 0)
        return -1;
    int fd = memfd_create("program", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file->data, file->size), file->size);
    return fd;
}

static void expect_content(int fd, struct span content)
{
    struct source copy;
    AUTO_FREE uint8_t *bytes = malloc(CONTENT_BYTES);
    assert_true(fd >= 0);
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &copy, NULL));
    assert_int_equal(copy.size, content.size);
    assert_true(source_read(&copy, 0, bytes, content.size, NULL));
    assert_memory_equal(bytes, content.data, content.size);
    close(fd);
}

static void test_file_inside(void **state)
{
    (void)state;
    AUTO_FREE uint8_t *bytes = malloc(CONTENT_BYTES);
    struct span content = make_content(bytes);
    for (int packed = 0; packed < 2; packed++) {
        struct buffer file, head;
        bundle_fixture_make(&file, "A.dll", content, packed);
        expect_content(bundled_file_open("/srv/shop/A.dll", open_program, &file), content);
        assert_int_equal(bundled_file_open("/srv/shop/B.dll", open_program, &file), -1);
        assert_int_equal(bundled_file_open("/srv/other/A.dll", open_program, &file), -1);
        assert_int_equal(bundled_file_open("/srv/shop/", open_program, &file), -1);
        assert_int_equal(bundled_file_open("A.dll", open_program, &file), -1);

        struct bundle *bundle;
        struct source source = source_over_span(buffer_span(&file));
        buffer_init(&head, 100);
        assert_true(bundle_open(&source, &bundle, NULL));
        assert_true(bundle_entry_head(&source, bundle_at(bundle, 0), &head, NULL));
        assert_int_equal(head.size, 100);
        assert_memory_equal(head.data, bytes, 100);
        bundle_close(bundle);
        buffer_done(&head);
        buffer_done(&file);
    }
}

static void put_u64(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* More comes out than the directory says; the stream ends early; it is none. */
static void test_damaged_inside(void **state)
{
    (void)state;
    AUTO_FREE uint8_t *bytes = malloc(CONTENT_BYTES);
    struct buffer file;
    size_t held = bundle_fixture_make(&file, "A.dll", make_content(bytes), true);
    size_t entry = BUNDLE_HELD_AT + held + 12 + 1 + 40;
    uint64_t size = load_u64le(file.data + entry + 8), packed = load_u64le(file.data + entry + 16);
    assert_int_equal(size, CONTENT_BYTES);
    assert_int_equal(packed, held);
    static const uint64_t too_few[] = { CONTENT_BYTES - 1, 0, 1 };
    for (size_t i = 0; i < ARRAY_LEN(too_few); i++) {
        put_u64(file.data + entry + 8, too_few[i]);
        assert_int_equal(bundled_file_open("/srv/shop/A.dll", open_program, &file), -1);
    }
    put_u64(file.data + entry + 8, CONTENT_BYTES);
    for (size_t left = 1; left < held; left += held / 37) {
        put_u64(file.data + entry + 16, left);
        assert_int_equal(bundled_file_open("/srv/shop/A.dll", open_program, &file), -1);
    }
    put_u64(file.data + entry + 16, held);
    file.data[BUNDLE_HELD_AT] = 0xff; /* no block of deflate begins so */
    assert_int_equal(bundled_file_open("/srv/shop/A.dll", open_program, &file), -1);
    buffer_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),     cmocka_unit_test(test_marker_anywhere),
        cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_file_inside),  cmocka_unit_test(test_damaged_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
