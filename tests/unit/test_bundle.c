#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "read/bundle.h"

enum { FILE_BYTES_MAX = 4 << 20, HOST_BYTES = 100 };

static const uint8_t marker[32] = {
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
    0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
};

static void add_text(struct buffer *file, const char *text)
{
    buffer_varuint(file, strlen(text));
    buffer_string(file, text);
}

static void add_entry(struct buffer *file, uint32_t major, uint64_t offset, uint64_t size,
                      uint64_t compressed, uint8_t kind, const char *path)
{
    buffer_u64le(file, offset);
    buffer_u64le(file, size);
    if (major >= 6)
        buffer_u64le(file, compressed);
    buffer_u8(file, kind);
    add_text(file, path);
}

/* Host bytes with the marker, two files of 50 and 30 bytes, the directory. */
static void build(struct buffer *file, uint32_t major, size_t host_bytes)
{
    buffer_init(file, FILE_BYTES_MAX);
    uint8_t *host = buffer_reserve(file, host_bytes);
    memset(host, 'h', host_bytes);
    file->size = host_bytes;
    buffer_u64le(file, host_bytes + 8 + 32 + 80);
    buffer_append(file, marker, sizeof marker);
    for (int i = 0; i < 80; i++)
        buffer_u8(file, 'f');
    buffer_u32le(file, major);
    buffer_u32le(file, 0);
    buffer_u32le(file, 2);
    add_text(file, "an id");
    if (major >= 2)
        for (int i = 0; i < 5; i++)
            buffer_u64le(file, 0);
    add_entry(file, major, host_bytes + 40 + 50, 30, 0, 1, "sub/B.dll");
    add_entry(file, major, host_bytes + 40, 50, 0, 1, "A.dll");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_marker_anywhere),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
