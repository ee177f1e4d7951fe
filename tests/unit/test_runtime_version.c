#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "clr/runtime_version.h"

static const struct {
    const char *path;
    const char *version; /* NULL: none */
} paths[] = {
    { "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so", "10.0.12" },
    { "/x/11.0.0-preview.3.25171.5/libcoreclr.so", "11.0.0-preview.3.25171.5" },
    { "/3.1.32/libcoreclr.so", "3.1.32" },
    { "/app/libcoreclr.so", NULL },
    { "/app.net/libcoreclr.so", NULL },
    { "/8/libcoreclr.so", NULL },
    { "/8.0\x1b[0m/libcoreclr.so", NULL },
    { "8.0.1/libcoreclr.so", NULL },
    { "libcoreclr.so", NULL },
    { "/libcoreclr.so", NULL },
    { "", NULL },
    { "/8.000000000000000000000000000000000000000000000000000000000/libcoreclr.so", NULL },
};

static void test_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct runtime_version version = { "untouched" };
        bool ok = runtime_version_from_path(span_of(paths[i].path, strlen(paths[i].path)), &version);
        if (ok != (paths[i].version != NULL) ||
            strcmp(version.text, ok ? paths[i].version : "untouched") != 0)
            fail_msg("'%s': '%s'", paths[i].path, version.text);
    }
}

static const struct {
    const char *text;
    const char *version;
} texts[] = {
    { "@(#)Version 10.0.1226.42308 @Commit: 1", "10.0.12" },
    { "@(#)Version 8.0.3126.42015 @Commit: 1", "8.0.31" },
    { "@(#)Version 8.0.23.53103 @Commit: 1", "8.0.0" },
    { "@(#)Version 4.700.20.6602 @Commit: 1", "3.1" },
    { "@(#)Version 10.0.1226", NULL },
    { "@(#)Version 10.0.", NULL },
    { "@(#)Version ", NULL },
    { "@(#)Version 99999999.0.1.1", NULL },
    { "@(#)Version x", NULL },
};

static void test_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct runtime_version version = { "untouched" };
        bool ok = runtime_version_from_text(span_of(texts[i].text, strlen(texts[i].text)), &version);
        if (ok != (texts[i].version != NULL) ||
            strcmp(version.text, ok ? texts[i].version : "untouched") != 0)
            fail_msg("'%s': '%s'", texts[i].text, version.text);
    }
}

/* An ELF header with one readable segment that holds `content` `gap` bytes behind its start. */
static void make_elf(struct buffer *out, const char *content, size_t content_size, size_t gap)
{
    buffer_init(out, 1 << 22);
    buffer_append(out,
                  "\x7f"
                  "ELF\2\1\1",
                  7);
    for (size_t i = 7; i < 32; i++)
        buffer_u8(out, 0);
    buffer_u64le(out, 64); /* program headers */
    buffer_u64le(out, 0);
    buffer_u32le(out, 0);
    buffer_u16le(out, 64);
    buffer_u16le(out, 56);
    buffer_u16le(out, 1);
    buffer_u16le(out, 0);
    buffer_u16le(out, 0);
    buffer_u16le(out, 0);
    buffer_u32le(out, 1); /* PT_LOAD */
    buffer_u32le(out, 4); /* R */
    buffer_u64le(out, 120);
    buffer_u64le(out, 0);
    buffer_u64le(out, 0);
    buffer_u64le(out, gap + content_size);
    buffer_u64le(out, gap + content_size);
    buffer_u64le(out, 4096);
    for (size_t i = 0; i < gap; i++)
        buffer_u8(out, 0);
    buffer_append(out, content, content_size);
}

static void test_scan(void **state)
{
    (void)state;
    static const char single[] =
        "\0DotNetRuntimeInfo\0DotNetRuntimeDebugHeader\0@(#)Version 9.0.725.1 @Commit: ";
    static const char native[] = "\0DotNetRuntimeDebugHeader\0";
    static const char other[] = "\0XDotNetRuntimeInfo\0";
    /* gaps around the size of a chunk: the text then lies across two */
    for (size_t gap = 0; gap < (1 << 18) + 200; gap += gap < 100 || gap > (1 << 18) - 200 ? 1 : 65336) {
        struct buffer elf;
        make_elf(&elf, single, sizeof single, gap);
        struct source file = source_over_span(buffer_span(&elf));
        enum runtime_kind kind = RUNTIME_NONE;
        struct runtime_version version;
        assert_true(runtime_version_scan(&file, &kind, &version, NULL));
        assert_int_equal(kind, RUNTIME_CORECLR);
        assert_string_equal(version.text, "9.0.7");
        buffer_done(&elf);
    }
    struct buffer elf;
    enum runtime_kind kind = RUNTIME_NONE;
    struct runtime_version version;
    make_elf(&elf, native, sizeof native, 5);
    struct source file = source_over_span(buffer_span(&elf));
    assert_true(runtime_version_scan(&file, &kind, &version, NULL));
    assert_int_equal(kind, RUNTIME_NATIVEAOT);
    assert_string_equal(version.text, "");
    buffer_done(&elf);
    make_elf(&elf, other, sizeof other, 5);
    file = source_over_span(buffer_span(&elf));
    assert_true(runtime_version_scan(&file, &kind, &version, NULL));
    assert_int_equal(kind, RUNTIME_NONE);
    buffer_done(&elf);
}

static void test_scan_cut(void **state)
{
    (void)state;
    static const char single[] = "\0DotNetRuntimeInfo\0@(#)Version 9.0.725.1 @Commit: ";
    struct buffer elf;
    make_elf(&elf, single, sizeof single, 0);
    for (size_t size = 0; size < elf.size; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, elf.data, size);
        struct source file = source_over_span(span_of(copy, size));
        enum runtime_kind kind;
        struct runtime_version version;
        struct error err;
        /* cut in the headers: an error; cut in the content: what is left is looked through */
        assert_int_equal(runtime_version_scan(&file, &kind, &version, &err), size >= 120);
        free(copy);
    }
    struct source empty =
        source_over_span(span_of("#!/bin/sh\n0123456789012345678901234567890123456789012345678901234", 64));
    enum runtime_kind kind;
    struct runtime_version version;
    struct error err;
    assert_false(runtime_version_scan(&empty, &kind, &version, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    buffer_done(&elf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_scan_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
