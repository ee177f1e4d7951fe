#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "bundle_fixture.h"
#include "collect/process_scan.h"
#include "collect/unpacked_images.h"

enum { PID = 7, PE_BYTES = 2048, TEXT_RVA = 0x10200, TEXT_OFF = 0x200, TEXT_BYTES = 0x400, PAGE = 4096 };
#define BASE UINT64_C(0x7f0000040000)
#define CODE (BASE + 0x10000) /* the page that .text begins in */

/* The headers of an assembly for Linux on x64, as crossgen writes them; then its code. */
static void make_assembly(struct buffer *pe, uint32_t stamp)
{
    buffer_init(pe, PE_BYTES);
    buffer_string(pe, "MZ");
    while (pe->size < 0x3c)
        buffer_u8(pe, 0);
    buffer_u32le(pe, 0x40);
    buffer_append(pe, "PE\0\0", 4);
    buffer_u16le(pe, 0x8664 ^ 0x7b79);
    buffer_u16le(pe, 1);
    buffer_u32le(pe, stamp);
    buffer_u64le(pe, 0);
    buffer_u16le(pe, 240);
    buffer_u16le(pe, 0x2022);
    buffer_u16le(pe, 0x20b);
    while (pe->size < 0x40 + 24 + 240)
        buffer_u8(pe, 0);
    buffer_append(pe, ".text\0\0", 8);
    buffer_u32le(pe, TEXT_BYTES);
    buffer_u32le(pe, TEXT_RVA);
    buffer_u32le(pe, TEXT_BYTES);
    buffer_u32le(pe, TEXT_OFF);
    for (int i = 0; i < 3; i++)
        buffer_u32le(pe, 0);
    buffer_u32le(pe, 0x60000020);
    while (pe->size < PE_BYTES)
        buffer_u8(pe, 0x90);
}

struct process {
    struct buffer assembly; /* what its memory holds at BASE */
    struct buffer program;
    size_t opened;
};

/* Zeros but for the headers. */
static void read_process(void *user, struct memory_piece *pieces, size_t count)
{
    const struct process *p = user;
    for (size_t i = 0; i < count; i++) {
        memset(pieces[i].into, 0, pieces[i].size);
        if (pieces[i].addr == BASE)
            memcpy(pieces[i].into, p->assembly.data, TEXT_OFF);
        pieces[i].got = pieces[i].size;
    }
}

static bool open_file(void *user, const char *path, struct source *out)
{
    struct process *p = user;
    assert_string_equal(path, "/srv/shop");
    p->opened++;
    *out = source_over_span(buffer_span(&p->program));
    return true;
}

static void close_file(void *user, struct source *file)
{
    (void)user;
    (void)file;
}

static void map(struct trace_builder *b, uint32_t process, uint64_t start, const char *path, uint64_t inode)
{
    process_scan_add_mapping(b, process, start, PAGE, 0, span_of(path, strlen(path)), 8, 1, inode, 1);
}

static const struct trace_image *image_at(const struct trace_builder *b, uint32_t process, uint64_t addr)
{
    uint32_t mapping = trace_builder_mapping_at(b, process, addr);
    return &b->trace.images.rows[b->trace.mappings.rows[mapping].image];
}

/* `stamp`: of what is in memory; the program has 0x1234's. */
static void look(uint32_t stamp, bool packed, struct trace_builder *b)
{
    struct process p = { 0 };
    struct buffer assembly;
    make_assembly(&assembly, 0x1234);
    make_assembly(&p.assembly, stamp);
    bundle_fixture_make(&p.program, "System.Linq.dll", buffer_span(&assembly), packed);
    trace_builder_init(b, 16);
    uint32_t process = trace_builder_process_start(b, PID, 0);
    map(b, process, 0x400000, "/srv/shop", 3);
    map(b, process, 0x500000, "/usr/lib/libc.so.6", 4);
    map(b, process, CODE, "", 0);
    map(b, process, CODE + 0x100000, "", 0);

    struct memory memory = { .read = read_process, .user = &p };
    struct module_files files = { open_file, close_file, &p };
    struct unpacked_images *images = unpacked_images_new(&memory, &files);
    unpacked_images_tell(images, b, process);
    map(b, process, CODE, "", 0); /* mappings are listed again */
    unpacked_images_tell(images, b, process);
    unpacked_images_free(images);
    assert_int_equal(p.opened, 1);
    buffer_done(&assembly);
    buffer_done(&p.assembly);
    buffer_done(&p.program);
}

static void test_found(void **state)
{
    (void)state;
    struct trace_builder b;
    look(0x1234, true, &b);
    uint32_t process = trace_builder_process(&b, PID), mapping = trace_builder_mapping_at(&b, process, CODE);
    const struct trace_image *image = image_at(&b, process, CODE);
    assert_int_equal(image->kind, IMAGE_PE);
    assert_string_equal(trace_string(&b.trace, image->path), "/srv/shop/System.Linq.dll");
    assert_int_equal(b.trace.mappings.rows[mapping].file_off, 0);
    assert_int_equal(image_at(&b, process, CODE + 0x100000)->kind, IMAGE_ANON);
    assert_int_equal(b.trace.mappings.count, 5); /* with row 0 */
    trace_builder_done(&b);
}

/* Another assembly's headers, and those of one that the program holds as it is, and so maps. */
static void test_not_found(void **state)
{
    (void)state;
    static const struct {
        uint32_t stamp;
        bool packed;
    } cases[] = { { 0x4321, true }, { 0x1234, false } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace_builder b;
        look(cases[i].stamp, cases[i].packed, &b);
        assert_int_equal(image_at(&b, trace_builder_process(&b, PID), CODE)->kind, IMAGE_ANON);
        trace_builder_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_found), cmocka_unit_test(test_not_found) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
