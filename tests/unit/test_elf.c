#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <lzma.h>
#include <zlib.h>

#include "base/own.h"
#include "elf_fixture.h"
#include "read/eh_frame.h"
#include "read/elf.h"
#include "read/unpack.h"

static bool open_bytes(struct span bytes, struct elf *out, struct error *err)
{
    struct source file = source_over_span(bytes);
    return elf_open(&file, out, err);
}

static void test_sections_and_segments(void **state)
{
    (void)state;
    struct buffer bytes = elf_fixture_load("sample.so");
    struct elf e;
    struct error err;
    assert_true(open_bytes(buffer_span(&bytes), &e, &err));
    assert_int_equal(e.machine, ELF_X86_64);
    const struct elf_section *text = elf_section_named(&e, ".text");
    assert_non_null(text);
    assert_ptr_equal(elf_section_at(&e, text->addr), text);
    assert_null(elf_section_named(&e, ".gnu_debugdata"));
    uint64_t addr = 0, file_off = 0;
    assert_true(elf_addr_of_file_off(&e, text->file_off + 3, &addr));
    assert_int_equal(addr, text->addr + 3);
    assert_true(elf_file_off_of_addr(&e, addr, &file_off));
    assert_int_equal(file_off, text->file_off + 3);
    assert_false(elf_addr_of_file_off(&e, UINT64_MAX, &addr));
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t size = 0;
    assert_true(elf_build_id(&e, id, &size));
    assert_int_equal(size, 20);
    elf_done(&e);
    buffer_done(&bytes);
}

static void test_debug_link(void **state)
{
    (void)state;
    struct buffer bytes = elf_fixture_load("stripped.so");
    struct elf e;
    struct error err;
    char name[256];
    uint32_t crc = 0;
    assert_true(open_bytes(buffer_span(&bytes), &e, &err));
    assert_true(elf_debug_link(&e, name, &crc));
    assert_string_equal(name, "sample.debug");
    assert_int_not_equal(crc, 0);
    /* a link into another folder is no link */
    uint8_t *at = memmem(bytes.data, bytes.size, "sample.debug", 12);
    memcpy(at, "../../shadow", 12);
    assert_false(elf_debug_link(&e, name, &crc));
    elf_done(&e);
    buffer_done(&bytes);
}

struct counted {
    size_t count;
};

static bool count_symbol(void *user, const struct elf_symbol *symbol)
{
    (void)symbol;
    ((struct counted *)user)->count++;
    return true;
}

/* Reads everything there is; the sanitizers judge. */
static void read_all(struct span bytes)
{
    struct elf e;
    if (!open_bytes(bytes, &e, NULL))
        return;
    uint8_t id[ELF_BUILD_ID_MAX];
    char name[256];
    size_t size;
    uint32_t crc;
    struct counted counted = { 0 };
    struct eh_ranges ranges;
    struct buffer unpacked;
    buffer_init(&unpacked, 1 << 20);
    elf_build_id(&e, id, &size);
    elf_debug_link(&e, name, &crc);
    for (size_t i = 0; i < e.section_count; i++) {
        struct source table;
        if (elf_section_source(&e, &e.sections[i], &unpacked, &table, NULL))
            elf_symbols(&table, count_symbol, &counted, NULL);
    }
    if (eh_ranges_read(&e, &ranges, NULL))
        eh_ranges_done(&ranges);
    elf_unpack_debugdata(&e, &unpacked, NULL);
    buffer_done(&unpacked);
    elf_done(&e);
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    static const char *const names[] = { "sample.so", "mini.so", "runtime.so" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buffer bytes = elf_fixture_load(names[i]);
        for (size_t size = 0; size <= bytes.size; size++) {
            uint8_t *exact = malloc(size ? size : 1);
            memcpy(exact, bytes.data, size);
            read_all(span_of(exact, size));
            free(exact);
        }
        buffer_done(&bytes);
    }
}

static const struct {
    const char *name;
    size_t offset;
    uint8_t value;
    enum error_kind kind;
} damages[] = {
    { "magic", 0, 0, ERROR_INPUT },
    { "32 bits", 4, 1, ERROR_UNSUPPORTED },
    { "big-endian", 5, 2, ERROR_UNSUPPORTED },
    { "other machine", 18, 3, ERROR_UNSUPPORTED },
    { "size of a program header", 54, 0, ERROR_INPUT },
    { "program headers outside", 39, 0x7f, ERROR_INPUT },
};

static void test_damaged_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        struct buffer bytes = elf_fixture_load("sample.so");
        struct elf e;
        struct error err = { 0 };
        bytes.data[damages[i].offset] = damages[i].value;
        if (open_bytes(buffer_span(&bytes), &e, &err) || err.kind != damages[i].kind)
            fail_msg("%s: %s", damages[i].name, err.what);
        buffer_done(&bytes);
    }
}

/* Thousands of sections that share one name, or one note, of megabytes: each question stays cheap. */
static void test_many_sections_of_one_name(void **state)
{
    (void)state;
    enum { HEADER = 64, SECTIONS = 60000, NAMES_AT = HEADER + SECTIONS * 64, NAMES = 8 << 20 };
    struct buffer bytes;
    struct elf e;
    struct error err;
    buffer_init(&bytes, NAMES_AT + NAMES);
    uint8_t *file = buffer_reserve(&bytes, NAMES_AT + NAMES);
    bytes.size = NAMES_AT + NAMES;
    memset(file, 'x', bytes.size);
    memset(file, 0, HEADER);
    memcpy(file, (uint8_t[]){ 0x7f, 'E', 'L', 'F', 2, 1 }, 6);
    file[18] = ELF_X86_64;
    file[40] = HEADER; /* where the sections are */
    file[58] = 64;     /* bytes of one */
    file[60] = SECTIONS & 0xff;
    file[61] = SECTIONS >> 8;
    file[62] = 1; /* the one with the names */
    for (size_t i = 0; i < SECTIONS; i++) {
        uint64_t words[8] = { (uint64_t)ELF_SECTION_NOTE << 32, 0, 0, NAMES_AT, 1 << 20 };
        if (i == 1)
            words[4] = NAMES;
        memcpy(file + HEADER + i * 64, words, sizeof words);
    }
    memset(file + NAMES_AT, 0, 1 << 20); /* notes without name and value */
    file[NAMES_AT] = 'x';
    file[bytes.size - 1] = 0;
    assert_true(open_bytes(buffer_span(&bytes), &e, &err));
    assert_int_equal(e.section_count, SECTIONS);
    for (size_t i = 0; i < SECTIONS; i++)
        e.sections[i].name = 1 << 20;
    assert_int_equal(strlen(elf_section_name(&e, &e.sections[5])), NAMES - (1 << 20) - 1);
    assert_null(elf_section_named(&e, ".eh_frame"));
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t size;
    assert_false(elf_build_id(&e, id, &size));
    elf_done(&e);
    /* a table that does not end holds no name at its end */
    file[bytes.size - 1] = 'x';
    assert_true(open_bytes(buffer_span(&bytes), &e, &err));
    e.sections[5].name = 1 << 20;
    assert_string_equal(elf_section_name(&e, &e.sections[5]), "");
    elf_done(&e);
    buffer_done(&bytes);
}

/* A file with holes may claim a table of any size: nothing of it is read. */
static void test_table_of_a_hole(void **state)
{
    (void)state;
    struct source table = { .fd = -1, .size = ((16 << 20) + 1) * (uint64_t)24 };
    struct counted counted = { 0 };
    struct error err = { 0 };
    assert_false(elf_symbols(&table, count_symbol, &counted, &err));
    assert_int_equal(err.kind, ERROR_LIMIT);
    assert_int_equal(counted.count, 0);
}

/* Without a section table there are still segments. */
static void test_no_section_table(void **state)
{
    (void)state;
    struct buffer bytes = elf_fixture_load("sample.so");
    struct elf e;
    struct error err;
    uint64_t addr = 0;
    memset(bytes.data + 40, 0xff, 8);
    assert_true(open_bytes(buffer_span(&bytes), &e, &err));
    assert_int_equal(e.section_count, 0);
    assert_true(elf_addr_of_file_off(&e, 0x370, &addr));
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t size = 0;
    assert_true(elf_build_id(&e, id, &size));
    elf_done(&e);
    buffer_done(&bytes);
}

/* A file whose .comment-like section 1 is `size` bytes at `file_off`, compressed. */
static void make_compressed(struct elf *e, struct elf_section sections[2], struct span file)
{
    sections[1] = (struct elf_section){ .type = 1, .flags = 0x800, .size_bytes = file.size };
    *e = (struct elf){ .file = source_over_span(file), .sections = sections, .section_count = 2 };
}

static void test_compressed_section(void **state)
{
    (void)state;
    size_t plain_size = 6 << 20; /* zeros: a ratio of 1000 */
    uint8_t *plain = calloc(1, plain_size), *file = calloc(1, 24 + 64 * 1024);
    struct elf e;
    struct elf_section sections[2] = { 0 };
    struct buffer out;
    struct error err;
    buffer_init(&out, 64 << 20);
    for (size_t size = 500 * 1024; size <= plain_size; size *= 12) {
        uLongf packed = 64 * 1024;
        assert_int_equal(compress(file + 24, &packed, plain, size), Z_OK);
        file[0] = 1;
        make_compressed(&e, sections, span_of(file, 24 + packed));
        bool allowed = size <= 1 << 20;
        assert_int_equal(elf_section_load(&e, &sections[1], &out, &err), allowed);
        if (allowed)
            assert_int_equal(out.size, size);
        else
            assert_int_equal(err.kind, ERROR_LIMIT);
        make_compressed(&e, sections, span_of(file, 24 + packed - 5));
        assert_false(elf_section_load(&e, &sections[1], &out, &err));
        file[0] = 9;
        assert_false(elf_section_load(&e, &sections[1], &out, &err));
        assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    }
    buffer_done(&out);
    free(plain);
    free(file);
}

static void test_packed_debugdata(void **state)
{
    (void)state;
    uint8_t *plain = calloc(1, 4 << 20), packed[16 * 1024];
    struct buffer out;
    struct error err;
    buffer_init(&out, 64 << 20);
    for (size_t size = 1 << 19; size <= 4 << 20; size *= 8) { /* zeros: a ratio above 1000 */
        size_t packed_size = 0;
        assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, plain, size, packed, &packed_size,
                                                 sizeof packed),
                         LZMA_OK);
        struct source source = source_over_span(span_of(packed, packed_size));
        bool allowed = size <= 1 << 20;
        assert_int_equal(unpack_xz(&source, &out, &err), allowed);
        if (!allowed)
            assert_int_equal(err.kind, ERROR_LIMIT);
        for (size_t cut = 0; allowed && cut < packed_size; cut++) {
            source = source_over_span(span_of(packed, cut));
            assert_false(unpack_xz(&source, &out, &err));
            assert_int_equal(err.kind, ERROR_INPUT);
        }
    }
    buffer_done(&out);
    free(plain);
}

static void test_function_ranges(void **state)
{
    (void)state;
    struct buffer bytes = elf_fixture_load("bare.so");
    struct elf e;
    struct error err;
    struct eh_ranges ranges;
    uint64_t start = 0, size_bytes = 0;
    assert_true(open_bytes(buffer_span(&bytes), &e, &err));
    assert_true(eh_ranges_read(&e, &ranges, &err));
    assert_true(eh_ranges_find(&ranges, 0x385, &start, &size_bytes));
    assert_int_equal(start, 0x380);
    assert_int_equal(size_bytes, 17);
    assert_false(eh_ranges_find(&ranges, 0x391, &start, &size_bytes));
    assert_false(eh_ranges_find(&ranges, 0x10, &start, &size_bytes));
    assert_false(eh_ranges_find(&ranges, UINT64_MAX, &start, &size_bytes));
    eh_ranges_done(&ranges);
    elf_done(&e);
    buffer_done(&bytes);
}

static const struct {
    const char *name;
    uint8_t bytes[64];
    size_t size;
    bool found;
    uint64_t start, length;
} frames[] = {
    { "pcrel sdata4",
      { 0x10, 0, 0, 0, 0,    0, 0, 0, 1,    'z',  'R',  0,    1,    0x78, 16, 1, 0x1b, 0, 0, 0,
        0x10, 0, 0, 0, 0x18, 0, 0, 0, 0xe4, 0xff, 0xff, 0xff, 0x20, 0,    0,  0, 0,    0, 0, 0 },
      40,
      true,
      0x1000,
      0x20 },
    { "absolute udata8",
      { 0x10, 0, 0, 0, 0, 0,    0, 0, 1, 'z', 'R', 0, 1,    0x78, 16, 1, 4, 0, 0, 0, 0x18, 0, 0, 0,
        0x18, 0, 0, 0, 0, 0x20, 0, 0, 0, 0,   0,   0, 0x30, 0,    0,  0, 0, 0, 0, 0, 0,    0, 0, 0 },
      48,
      true,
      0x2000,
      0x30 },
    { "terminator in the middle",
      { 0x10, 0, 0,    0, 0, 0, 0,    0, 1, 'z', 'R', 0,    1, 0x78, 16,   1, 3, 0, 0, 0, 0, 0,
        0,    0, 0x10, 0, 0, 0, 0x1c, 0, 0, 0,   0,   0x40, 0, 0,    0x20, 0, 0, 0, 0, 0, 0, 0 },
      44,
      true,
      0x4000,
      0x20 },
    { "CIE pointer before the section",
      { 0x10, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
      20,
      false,
      0,
      0 },
    { "record longer than the section", { 0x40, 0, 0, 0, 0, 0, 0, 0 }, 8, false, 0, 0 },
    { "FDE as its own CIE", { 0x0c, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 16, false, 0, 0 },
    { "CIE too short for its id",
      { 3,    0, 0, 0, 0,    0, 0, 0, 1, 'z',  'R', 0, 1,    0x78, 16, 1, 3, 0, 0, 0,
        0x10, 0, 0, 0, 0x18, 0, 0, 0, 0, 0x40, 0,   0, 0x20, 0,    0,  0, 0, 0, 0, 0 },
      40,
      false,
      0,
      0 },
    { "unknown version",
      { 0x10, 0, 0, 0, 0,    0, 0, 0, 2, 'z',  'R', 0, 1,    0x78, 16, 1, 3, 0, 0, 0,
        0x10, 0, 0, 0, 0x18, 0, 0, 0, 0, 0x40, 0,   0, 0x20, 0,    0,  0, 0, 0, 0, 0 },
      40,
      false,
      0,
      0 },
};

static void test_frames(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(frames); i++)
        for (size_t size = 0; size <= frames[i].size; size++) {
            uint8_t *exact = malloc(size ? size : 1);
            memcpy(exact, frames[i].bytes, size);
            struct eh_frame_iterator it = eh_frame_over(span_of(exact, size), 0x1000);
            struct eh_fde fde = { 0 };
            bool found = eh_frame_next(&it, &fde);
            if (found != (size == frames[i].size && frames[i].found) ||
                (found && (fde.start != frames[i].start || fde.size_bytes != frames[i].length)))
                fail_msg("%s, %zu bytes: %d 0x%lx", frames[i].name, size, found, (unsigned long)fde.start);
            free(exact);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sections_and_segments),
        cmocka_unit_test(test_debug_link),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_many_sections_of_one_name),
        cmocka_unit_test(test_damaged_headers),
        cmocka_unit_test(test_no_section_table),
        cmocka_unit_test(test_compressed_section),
        cmocka_unit_test(test_packed_debugdata),
        cmocka_unit_test(test_table_of_a_hole),
        cmocka_unit_test(test_function_ranges),
        cmocka_unit_test(test_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
