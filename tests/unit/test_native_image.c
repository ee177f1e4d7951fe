#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "elf_fixture.h"
#include "symbolize/demangle.h"
#include "symbolize/native_image.h"

/* What the finder is asked for, and what it answers. */
struct shelf {
    const char *path;
    int fd; /* given out as a duplicate */
    size_t asked;
};

static int open_from_shelf(void *user, const char *path)
{
    struct shelf *shelf = user;
    shelf->asked++;
    return shelf->path && strcmp(path, shelf->path) == 0 ? dup(shelf->fd) : -1;
}

static const struct {
    const char *file, *path;
    const char *debug_path; /* where sample.debug is found, or NULL */
    uint64_t file_off;
    const char *name; /* NULL: nothing is said */
    uint64_t start;
    enum resolver resolver;
    enum code_kind kind;
} finds[] = {
    { "sample.so", "/a/sample.so", NULL, 0x384, "hidden_helper", 0x380, RESOLVER_ELF_SYMTAB, CODE_NATIVE },
    { "sample.so", "/a/sample.so", NULL, 0x3a0, "exported_function", 0x3a0, RESOLVER_ELF_SYMTAB,
      CODE_NATIVE },
    { "sample.so", "/a/sample.so", NULL, 0x3c2, "plain_alias", 0x3c0, RESOLVER_ELF_SYMTAB, CODE_NATIVE },
    { "sample.so", "/a/sample.so", NULL, 0x3e1, "Sample::Counter::add", 0x3e0, RESOLVER_ELF_SYMTAB,
      CODE_NATIVE },
    { "sample.so", "/a/sample.so", NULL, 0x372, "without_size", 0x370, RESOLVER_ELF_SYMTAB, CODE_NATIVE },
    { "sample.so", "/a/sample.so", NULL, 0x362, "imported@plt", 0x360, RESOLVER_ELF_DYNSYM, CODE_NATIVE },
    { "sample.so", "/a/sample.so", NULL, 0x352, "[plt]", 0x350, RESOLVER_ELF_DYNSYM, CODE_NATIVE },
    { "sample.so", "/a/sample.so", NULL, 0x40, NULL, 0, RESOLVER_NONE, CODE_NATIVE },
    { "sample.so", "/a/sample.so", NULL, 1 << 20, NULL, 0, RESOLVER_NONE, CODE_NATIVE },
    { "bare.so", "/a/bare.so", NULL, 0x384, "bare.so!0x380", 0x380, RESOLVER_EH_FRAME, CODE_NATIVE },
    { "bare.so", "/a/bare.so", NULL, 0x3a4, "exported_function", 0x3a0, RESOLVER_ELF_DYNSYM, CODE_NATIVE },
    { "bare.so", "/a/bare.so", NULL, 0x372, "bare.so!0x370", 0x370, RESOLVER_CODE, CODE_NATIVE },
    { "mini.so", "/a/mini.so", NULL, 0x384, "hidden_helper", 0x380, RESOLVER_ELF_MINIDEBUG, CODE_NATIVE },
    { "stripped.so", "/a/b/x.so", NULL, 0x384, "x.so!0x380", 0x380, RESOLVER_EH_FRAME, CODE_NATIVE },
    { "stripped.so", "/a/b/x.so", "/a/b/sample.debug", 0x384, "hidden_helper", 0x380, RESOLVER_ELF_DEBUG,
      CODE_NATIVE },
    { "stripped.so", "/a/b/x.so", "/a/b/.debug/sample.debug", 0x384, "hidden_helper", 0x380,
      RESOLVER_ELF_DEBUG, CODE_NATIVE },
    { "stripped.so", "/a/b/x.so", "/usr/lib/debug/a/b/sample.debug", 0x384, "hidden_helper", 0x380,
      RESOLVER_ELF_DEBUG, CODE_NATIVE },
    { "runtime.so", "/a/libcoreclr.so", NULL, 0x2e1, "Thing_GetFirst", 0x2e0, RESOLVER_QCALL, CODE_RUNTIME },
    { "runtime.so", "/a/app", NULL, 0x2f1, "Thing_GetSecond", 0x2f0, RESOLVER_QCALL, CODE_RUNTIME },
    { "runtime.so", "/a/app", NULL, 0x301, "app!0x300", 0x300, RESOLVER_EH_FRAME, CODE_RUNTIME },
    { "fcalls.so", "/a/libcoreclr.so", NULL, 0x441, "System.Threading.Monitor.Enter", 0x440, RESOLVER_FCALL,
      CODE_RUNTIME },
    { "fcalls.so", "/a/libcoreclr.so", NULL, 0x451, "System.Threading.Monitor..leave", 0x450, RESOLVER_FCALL,
      CODE_RUNTIME },
    { "fcalls.so", "/a/libcoreclr.so", NULL, 0x461, "System.Threading.Thread.SpinWaitInternal", 0x460,
      RESOLVER_FCALL, CODE_RUNTIME },
    { "fcalls.so", "/a/libcoreclr.so", NULL, 0x471, "libcoreclr.so!0x470", 0x470, RESOLVER_EH_FRAME,
      CODE_RUNTIME },
    { "fcalls.so", "/a/libmine.so", NULL, 0x441, "System.Threading.Monitor.Enter", 0x440, RESOLVER_FCALL,
      CODE_RUNTIME },
    { "tableless.so", "/a/tableless.so", NULL, 0x292, "tableless.so!0x290", 0x290, RESOLVER_CODE,
      CODE_NATIVE }, /* called */
    { "tableless.so", "/a/tableless.so", NULL, 0x2a0, "tableless.so!0x2a0", 0x2a0, RESOLVER_CODE,
      CODE_NATIVE }, /* in a table */
    { "tableless.so", "/a/tableless.so", NULL, 0x2b3, "tableless.so!0x2b0", 0x2b0, RESOLVER_CODE,
      CODE_NATIVE }, /* its address is taken */
    { "tableless.so", "/a/tableless.so", NULL, 0x2cd, "exported", 0x2c0, RESOLVER_ELF_DYNSYM, CODE_NATIVE },
    { "tableless.so", "/a/tableless.so", NULL, 0x2e8, NULL, 0, RESOLVER_NONE, CODE_NATIVE }, /* padding */
    { "tableless.so", "/a/tableless.so", NULL, 0x301, "tableless.so!0x300", 0x300, RESOLVER_CODE,
      CODE_NATIVE }, /* nothing refers to it */
    { "sample.so", "/a/libSystem.Native.so", NULL, 0x384, "hidden_helper", 0x380, RESOLVER_ELF_SYMTAB,
      CODE_RUNTIME },
};

static void test_find(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(finds); i++) {
        struct buffer bytes = elf_fixture_load(finds[i].file);
        struct source file = source_over_span(buffer_span(&bytes));
        AUTO_FD int debug = elf_fixture_open("sample.debug");
        struct shelf shelf = { finds[i].debug_path, debug, 0 };
        struct debug_finder finder = { open_from_shelf, &shelf };
        struct native_image *image;
        struct error err;
        assert_true(native_image_open(&file, finds[i].path, &finder, &image, &err));
        struct code_name name = { .name = "" };
        uint64_t start = 0;
        bool found = native_image_find(image, finds[i].file_off, &name, &start);
        if (found != (finds[i].name != NULL))
            fail_msg("case %zu: found %d %s", i, found, name.name);
        if (found) {
            assert_string_equal(name.name, finds[i].name);
            assert_int_equal(start, finds[i].start);
            assert_int_equal(name.resolver, finds[i].resolver);
            assert_int_equal(name.kind, finds[i].kind);
            assert_string_equal(name.module, strrchr(finds[i].path, '/') + 1);
        }
        assert_int_equal(strlen(native_image_build_id(image)), 40);
        native_image_close(image);
        buffer_done(&bytes);
    }
}

/* A debug file that is not this image's must not name it, wherever it lies. */
static void test_foreign_debug_file(void **state)
{
    (void)state;
    struct buffer bytes = elf_fixture_load("stripped.so");
    struct buffer debug = elf_fixture_load("sample.debug");
    debug.data[0x1c8 + 16] ^= 1; /* its build id */
    AUTO_FD int fd = elf_fixture_file(debug.data, debug.size);
    struct shelf shelf = { "/a/sample.debug", fd, 0 };
    struct debug_finder finder = { open_from_shelf, &shelf };
    struct source file = source_over_span(buffer_span(&bytes));
    struct native_image *image;
    struct error err;
    struct code_name name;
    uint64_t start;
    assert_true(native_image_open(&file, "/a/x.so", &finder, &image, &err));
    assert_true(native_image_find(image, 0x384, &name, &start));
    assert_int_equal(name.resolver, RESOLVER_EH_FRAME);
    assert_int_equal(shelf.asked, 4);
    native_image_close(image);
    buffer_done(&debug);
    buffer_done(&bytes);
}

static void test_not_elf(void **state)
{
    (void)state;
    struct source file = source_over_span(span_of("#!/bin/sh\n", 10));
    struct native_image *image = NULL;
    struct error err;
    assert_false(native_image_open(&file, "/bin/x", NULL, &image, &err));
    assert_null(image);
    assert_int_equal(err.kind, ERROR_INPUT);
    native_image_close(NULL);
}

static void check_cut_at_every_byte(const char *fixture, uint64_t from, uint64_t to)
{
    struct buffer bytes = elf_fixture_load(fixture);
    for (size_t size = 0; size < bytes.size; size++) {
        struct source file = source_over_span(span_of(bytes.data, size));
        struct native_image *image;
        if (!native_image_open(&file, "/a/libcoreclr.so", NULL, &image, NULL))
            continue;
        for (uint64_t off = from; off < to; off += 8) {
            struct code_name name;
            uint64_t start;
            native_image_find(image, off, &name, &start);
        }
        native_image_close(image);
    }
    buffer_done(&bytes);
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    check_cut_at_every_byte("runtime.so", 0x2a0, 0x320);
    check_cut_at_every_byte("fcalls.so", 0x440, 0x4a0);
}

static void test_vdso(void **state)
{
    (void)state;
    struct native_image *image;
    struct error err;
    if (!native_image_open_vdso(&image, &err))
        skip();
    bool clock = false;
    for (uint64_t off = 0; off < 0x4000; off += 16) {
        struct code_name name;
        uint64_t start;
        if (!native_image_find(image, off, &name, &start))
            continue;
        assert_int_equal(name.resolver, RESOLVER_VDSO);
        clock |= strstr(name.name, "clock_gettime") != NULL;
    }
    assert_true(clock);
    native_image_close(image);
}

static const struct {
    const char *mangled;
    const char *text; /* NULL: stays raw */
} spellings[] = {
    { "_ZN3WKS7gc_heap17find_first_objectEPhS1_", "WKS::gc_heap::find_first_object" },
    { "_ZN16ExecutionManager13FindCodeRangeEmNS_8ScanFlagE", "ExecutionManager::FindCodeRange" },
    { "_ZN3FooD1Ev", "Foo::~Foo" },
    { "_ZN3FooplERKS_", "Foo::operator+" },
    { "_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::move<int&>" },
    { "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write" },
    { "_RNvC6_123foo3bar", "123foo::bar" },
    { "malloc", NULL },
    { "_Z", NULL },
    { "_ZN3Fo", NULL },
    { "", NULL },
};

static void test_demangle(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 8192);
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        bool ok = demangle(spellings[i].mangled, &out);
        if (ok != (spellings[i].text != NULL) || (ok && strcmp((char *)out.data, spellings[i].text) != 0))
            fail_msg("%s: %s", spellings[i].mangled, ok ? (char *)out.data : "(raw)");
    }
    buffer_done(&out);
}

/* f<a, b<a, a>, b<b<a, a>, b<a, a>>, ...>: each level doubles the text; 34 of them would be 100 GB. */
static void append_doubling_name(struct buffer *out, size_t levels)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    buffer_string(out, "_Z1fI1a1bIS0_S0_E");
    for (size_t i = 0; i < levels; i++)
        buffer_format(out, "S1_IS%c_S%c_E", digits[2 + i], digits[2 + i]);
    buffer_string(out, "Evv");
    buffer_u8(out, 0);
}

static void test_demangle_bomb(void **state)
{
    (void)state;
    struct buffer name, out;
    buffer_init(&name, 8192);
    buffer_init(&out, 8192);
    append_doubling_name(&name, 1);
    assert_true(demangle((const char *)name.data, &out));
    assert_string_equal((const char *)out.data, "f<a, b<a, a>, b<b<a, a>, b<a, a> > >");
    buffer_clear(&name);
    append_doubling_name(&name, 34);
    assert_false(demangle((const char *)name.data, &out));
    buffer_done(&name);
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),          cmocka_unit_test(test_foreign_debug_file),
        cmocka_unit_test(test_not_elf),       cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_vdso),          cmocka_unit_test(test_demangle),
        cmocka_unit_test(test_demangle_bomb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
