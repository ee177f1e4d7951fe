#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/elf_bytes.h"

enum { BYTES_MAX = 1 << 20, SIZE_OFF = 8 /* in a compressed section's header */ };

static const char *const names[] = { "gcc5", "gcc5-gz" };

/* An ELF file in memory, and its .debug_info as it should be. */
struct fixture {
    struct buffer bytes, whole, memory;
    struct source file;
    struct elf elf;
    const struct elf_section *section;
};

static void fixture_open(const char *name, struct fixture *f)
{
    AUTO_FREE char *path = mem_format("%s/dwarf/inlined/%s.elf", GOLDEN_DIR, name);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct source file;
    buffer_init(&f->bytes, BYTES_MAX);
    buffer_init(&f->whole, BYTES_MAX);
    buffer_init(&f->memory, BYTES_MAX);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) ||
        !source_load(&file, 0, file.size, &f->bytes, NULL))
        fail_msg("cannot read %s", path);
    f->file = source_over_span(buffer_span(&f->bytes));
    assert_true(elf_open(&f->file, &f->elf, NULL));
    f->section = elf_section_named(&f->elf, ".debug_info");
    assert_true(elf_section_load(&f->elf, f->section, &f->whole, NULL));
    assert_true(f->whole.size > 1000);
}

static void fixture_close(struct fixture *f)
{
    elf_done(&f->elf);
    buffer_done(&f->bytes);
    buffer_done(&f->whole);
    buffer_done(&f->memory);
}

static void test_parts(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, size;
    } parts[] = { { 10, 20 }, { 900, 100 }, { 0, 1000 }, { 500, 1 }, { 30, 0 } };
    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        struct fixture f;
        struct elf_bytes b;
        fixture_open(names[n], &f);
        assert_true(elf_bytes_open(&f.elf, f.section, BYTES_MAX, &b, NULL));
        assert_int_equal(b.size, f.whole.size);
        struct span kept = elf_bytes_get(&b, 0, 8, &f.memory); /* stays while more is unpacked */
        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
            struct span wanted = span_part(buffer_span(&f.whole), parts[i].offset, parts[i].size);
            assert_true(span_equals(elf_bytes_get(&b, parts[i].offset, parts[i].size, &f.memory), wanted));
        }
        assert_true(span_equals(elf_bytes_get(&b, 0, b.size, &f.memory), buffer_span(&f.whole)));
        assert_true(span_equals(kept, span_part(buffer_span(&f.whole), 0, 8)));
        assert_int_equal(elf_bytes_get(&b, 1, b.size, &f.memory).size, 0);
        assert_int_equal(elf_bytes_get(&b, UINT64_MAX, 2, &f.memory).size, 0);
        elf_bytes_close(&b);
        fixture_close(&f);
    }
}

static void test_too_large(void **state)
{
    (void)state;
    struct fixture f;
    struct elf_bytes b;
    struct error err;
    fixture_open("gcc5-gz", &f);
    assert_false(elf_bytes_open(&f.elf, f.section, f.whole.size - 1, &b, &err));
    assert_int_equal(err.kind, ERROR_LIMIT);
    /* a header that claims more than such a stream can hold */
    memset(f.bytes.data + f.section->file_off + SIZE_OFF, 0xff, 8);
    assert_false(elf_bytes_open(&f.elf, f.section, SIZE_MAX, &b, &err));
    assert_int_equal(err.kind, ERROR_LIMIT);
    fixture_close(&f);
}

/* The stream ends, or is damaged, at every byte: what is given is right, or nothing. */
static void test_damage(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open("gcc5-gz", &f);
    for (uint64_t at = 24; at < f.section->size_bytes; at++) {
        struct elf_bytes b;
        struct elf_section cut = *f.section;
        cut.size_bytes = at;
        assert_true(elf_bytes_open(&f.elf, &cut, BYTES_MAX, &b, NULL));
        for (uint64_t offset = 0; offset < b.size; offset += 64) {
            struct span got = elf_bytes_get(&b, offset, 16, &f.memory);
            assert_true(got.size == 0 || span_equals(got, span_part(buffer_span(&f.whole), offset, 16)));
        }
        elf_bytes_close(&b);
        uint8_t *byte = f.bytes.data + f.section->file_off + at;
        *byte ^= 0x55;
        assert_true(elf_bytes_open(&f.elf, f.section, BYTES_MAX, &b, NULL));
        assert_true(elf_bytes_get(&b, 0, b.size, &f.memory).size <= b.size);
        elf_bytes_close(&b);
        *byte ^= 0x55;
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
