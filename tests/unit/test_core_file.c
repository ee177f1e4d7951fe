/* A core dump made by hand: two threads, three segments, two files; whole, cut at every byte, and wrong. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "read/core_file.h"
#include "read/elf.h"

enum {
    FILE_BYTES_MAX = 1 << 20,
    SEGMENTS = 5,
    NOTES_OFF = 64 + 56 * SEGMENTS,
    STATUS_BYTES = 392, /* of arm64; of x86-64 336 */
    PSINFO_BYTES = 136,
    SIGINFO_BYTES = 128,
};

struct shape { /* what a corrupt twin has different */
    uint16_t type, machine, segment_bytes, segments;
    uint64_t file_count;
    bool threadless;
    size_t fault_bytes; /* of the first NT_SIGINFO */
};

static const struct shape good = { 4, 62, 56, SEGMENTS, 2, false, SIGINFO_BYTES };

static void put_segment(struct buffer *b, uint32_t type, uint32_t flags, uint64_t off, uint64_t addr,
                        uint64_t file_bytes, uint64_t memory_bytes)
{
    buffer_u32le(b, type);
    buffer_u32le(b, flags);
    buffer_u64le(b, off);
    buffer_u64le(b, addr);
    buffer_u64le(b, 0);
    buffer_u64le(b, file_bytes);
    buffer_u64le(b, memory_bytes);
    buffer_u64le(b, 4096);
}

static void put_note(struct buffer *b, uint32_t type, const struct buffer *desc)
{
    buffer_u32le(b, 5);
    buffer_u32le(b, (uint32_t)desc->size);
    buffer_u32le(b, type);
    buffer_append(b, "CORE\0\0\0", 8);
    buffer_append(b, desc->data, desc->size);
    while (b->size % 4)
        buffer_u8(b, 0);
}

static void put_status(struct buffer *b, uint32_t tid, uint16_t signal_number, uint64_t rsp)
{
    struct buffer desc;
    buffer_init(&desc, STATUS_BYTES);
    memset(buffer_reserve(&desc, STATUS_BYTES), 0, STATUS_BYTES);
    desc.size = STATUS_BYTES;
    memcpy(desc.data + 12, &signal_number, 2);
    memcpy(desc.data + 32, &tid, 4);
    memcpy(desc.data + 112 + 19 * 8, &rsp, 8);
    put_note(b, 1, &desc);
    buffer_done(&desc);
}

static void put_process(struct buffer *b)
{
    struct buffer desc;
    uint32_t pid = 4711;
    buffer_init(&desc, PSINFO_BYTES);
    memset(buffer_reserve(&desc, PSINFO_BYTES), 0, PSINFO_BYTES);
    desc.size = PSINFO_BYTES;
    memcpy(desc.data + 24, &pid, 4);
    memset(desc.data + 40, 'n', 16); /* no NUL behind: 16 are all there is room for */
    memcpy(desc.data + 56, "name --option", 13);
    put_note(b, 3, &desc);
    buffer_done(&desc);
}

static void put_fault(struct buffer *b, uint32_t signal_number, uint32_t code, uint64_t addr, size_t bytes)
{
    struct buffer desc;
    buffer_init(&desc, SIGINFO_BYTES);
    buffer_u32le(&desc, signal_number);
    buffer_u32le(&desc, 0);
    buffer_u32le(&desc, code);
    buffer_u32le(&desc, 0);
    buffer_u64le(&desc, addr);
    while (desc.size < SIGINFO_BYTES)
        buffer_u8(&desc, 0);
    desc.size = bytes;
    put_note(b, 0x53494749, &desc);
    buffer_done(&desc);
}

static void put_files(struct buffer *b, uint64_t count)
{
    struct buffer desc;
    buffer_init(&desc, 4096);
    buffer_u64le(&desc, count);
    buffer_u64le(&desc, 4096);
    const uint64_t rows[] = { 0x1000, 0x3000, 0, 0x3000, 0x4000, 2 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        buffer_u64le(&desc, rows[i]);
    buffer_append(&desc, "/lib/a.so\0/lib/b.so (deleted)", 30);
    put_note(b, 0x46494c45, &desc);
    buffer_done(&desc);
}

static void build(struct buffer *file, const struct shape *shape)
{
    struct buffer notes;
    buffer_init(file, FILE_BYTES_MAX);
    buffer_init(&notes, FILE_BYTES_MAX);
    if (!shape->threadless) {
        put_status(&notes, 4711, 6, 0x8010);
        put_status(&notes, 4712, 0, 0x9010);
    }
    put_process(&notes);
    put_fault(&notes, SIGSEGV, SEGV_MAPERR, 0x7f12, shape->fault_bytes);
    put_fault(&notes, SIGABRT, 0, 0x7f13, SIGINFO_BYTES); /* gcore writes one a thread */
    put_files(&notes, shape->file_count);
    uint64_t data = NOTES_OFF + notes.size;
    buffer_append(file, "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0", 16);
    buffer_u16le(file, shape->type);
    buffer_u16le(file, shape->machine);
    buffer_u32le(file, 1);
    buffer_u64le(file, 0);
    buffer_u64le(file, 64);
    buffer_u64le(file, 0);
    buffer_u32le(file, 0);
    buffer_u16le(file, 64);
    buffer_u16le(file, shape->segment_bytes);
    buffer_u16le(file, shape->segments);
    while (file->size < 64)
        buffer_u8(file, 0);
    put_segment(file, 4, 0, NOTES_OFF, 0, notes.size, 0);
    put_segment(file, 1, 6, data, 0x8000, 0x100, 0x1000);         /* a stack: most of it was left out */
    put_segment(file, 1, 5, data + 0x100, 0x2000, 0x80, 0x1000);  /* a part of a.so's code */
    put_segment(file, 1, 4, data + 0x180, 0x3000, 0x40, 0x40);    /* b.so's start */
    put_segment(file, 1, 6, data + 0x1c0, 0x8100, 0x40, 0x10000); /* overlaps the stack */
    buffer_append(file, notes.data, notes.size);
    for (size_t i = 0; i < 0x1c0; i++)
        buffer_u8(file, (uint8_t)i);
    buffer_done(&notes);
}

static bool open_file(const struct buffer *file, struct core_file *core, struct error *err)
{
    struct source source = source_over_span(buffer_span(file));
    return core_file_open(&source, core, err);
}

static void test_content(void **state)
{
    (void)state;
    struct buffer file;
    struct core_file core;
    struct error err;
    build(&file, &good);
    if (!open_file(&file, &core, &err))
        fail_msg("%s", err.what);
    assert_int_equal(core.pid, 4711);
    assert_string_equal(core.name, "nnnnnnnnnnnnnnnn");
    assert_string_equal(core.command_line, "name --option");
    assert_int_equal(core.thread_count, 2);
    assert_int_equal(core.threads[0].tid, 4711);
    assert_int_equal(core.threads[0].signal, 6);
    assert_int_equal(core.threads[1].tid, 4712);
    assert_int_equal(load_u64le(core.threads[1].user_regs + 19 * 8), 0x9010);
    assert_int_equal(core.fault.signal, SIGSEGV);
    assert_true(core.fault.has_addr && core.fault.addr == 0x7f12);
    assert_int_equal(core.lost_bytes, 0);
    assert_true(core.has_files);
    core_file_close(&core);
    buffer_done(&file);
}

/* One that is cut tells nothing; of one that a process sent there is no address. */
static void test_fault(void **state)
{
    (void)state;
    struct buffer file;
    struct core_file core;
    struct shape shape = good;
    for (shape.fault_bytes = 0; shape.fault_bytes < SIGINFO_BYTES; shape.fault_bytes++) {
        build(&file, &shape);
        assert_true(open_file(&file, &core, NULL));
        assert_int_equal(core.fault.signal, shape.fault_bytes < 24 ? SIGABRT : SIGSEGV);
        assert_int_equal(core.fault.has_addr, shape.fault_bytes >= 24);
        core_file_close(&core);
        buffer_done(&file);
    }
}

/* A dump of arm64: x0..x30, then the stack pointer, the program counter and flags. */
static void test_arm64(void **state)
{
    (void)state;
    struct buffer file;
    struct core_file core;
    struct shape shape = good;
    shape.machine = ELF_AARCH64;
    build(&file, &shape);
    file.data[NOTES_OFF + 20 + 112 + 33 * 8] = 0x77;
    assert_true(open_file(&file, &core, NULL));
    assert_int_equal(core.machine, ELF_AARCH64);
    assert_int_equal(load_u64le(core.threads[0].user_regs + 19 * 8), 0x8010);
    assert_int_equal(load_u64le(core.threads[0].user_regs + 33 * 8), 0x77);
    core_file_close(&core);
    buffer_done(&file);
}

static void test_mappings(void **state)
{
    (void)state;
    struct buffer file;
    struct core_file core;
    build(&file, &good);
    assert_true(open_file(&file, &core, NULL));
    const struct memory_mapping *a = memory_mapping_at(&core.memory, 0x1500);
    const struct memory_mapping *b = memory_mapping_at(&core.memory, 0x3fff);
    const struct memory_mapping *stack = memory_mapping_at(&core.memory, 0x8fff);
    assert_int_equal(core.memory.mapping_count, 3);
    assert_string_equal(a->path, "/lib/a.so");
    assert_true(a->executable && !a->writable);
    assert_int_equal(a->end, 0x3000);
    assert_string_equal(b->path, "/lib/b.so");
    assert_int_equal(b->file_off, 0x2000);
    assert_false(b->executable);
    assert_string_equal(stack->path, "");
    assert_true(stack->writable && !stack->executable);
    assert_int_equal(stack->end, 0x9000);
    assert_null(memory_mapping_at(&core.memory, 0x4000));
    core_file_close(&core);
    buffer_done(&file);
}

/* createdump makes one segment of neighbours, with the rights of the first: the second may be code. */
static void test_joined_mappings(void **state)
{
    (void)state;
    enum { SECOND = 64 + 2 * 56, FLAGS = 4, MEMORY_BYTES = 40 };
    struct buffer file;
    struct core_file core;
    build(&file, &good);
    file.data[SECOND + FLAGS] = 4;
    file.data[SECOND + MEMORY_BYTES + 1] = 0x20; /* up to 0x4000 */
    assert_true(open_file(&file, &core, NULL));
    const struct memory_mapping *a = memory_mapping_at(&core.memory, 0x1500);
    const struct memory_mapping *b = memory_mapping_at(&core.memory, 0x3fff);
    assert_false(a->executable);
    assert_string_equal(b->path, "/lib/b.so");
    assert_true(b->executable && b->readable && !b->writable);
    core_file_close(&core);
    buffer_done(&file);
}

static void test_memory(void **state)
{
    (void)state;
    struct buffer file;
    struct core_file core;
    uint8_t bytes[0x200];
    build(&file, &good);
    assert_true(open_file(&file, &core, NULL));
    assert_true(memory_read(&core.memory, 0x8010, bytes, 4));
    assert_int_equal(bytes[0], 0x10);
    assert_true(memory_read(&core.memory, 0x2001, bytes, 4));
    assert_int_equal(bytes[0], 0x01);
    struct memory_piece piece = { .addr = 0x80f0, .into = bytes, .size = sizeof bytes };
    core.memory.read(core.memory.user, &piece, 1);
    assert_int_equal(piece.got, 0x10); /* what was left out cannot be read, nor what is behind it */
    assert_false(memory_read(&core.memory, 0x1000, bytes, 1));
    assert_false(memory_read(&core.memory, UINT64_MAX - 2, bytes, 8));
    core_file_close(&core);
    buffer_done(&file);
}

/* Whatever is missing at the end, what is there can be used. */
static void test_cut(void **state)
{
    (void)state;
    struct buffer file;
    build(&file, &good);
    size_t size = file.size, opened = 0;
    uint8_t bytes[16];
    for (file.size = 0; file.size < size; file.size++) {
        struct core_file core;
        if (!open_file(&file, &core, NULL))
            continue;
        opened++;
        assert_true(core.thread_count >= 1);
        assert_true(core.lost_bytes > 0);
        for (uint64_t at = 0x1000; at < 0xa000; at += 0x100)
            memory_read(&core.memory, at, bytes, sizeof bytes);
        core_file_close(&core);
    }
    assert_true(opened > 0x1c0);
    file.size = size;
    buffer_done(&file);
}

static const struct {
    const char *name;
    struct shape shape;
    enum error_kind kind;
} wrong[] = {
    { "no core dump", { 3, 62, 56, SEGMENTS, 2, false }, ERROR_INPUT },
    { "another machine", { 4, 40, 56, SEGMENTS, 2, false }, ERROR_UNSUPPORTED },
    { "strange segments", { 4, 62, 32, SEGMENTS, 2, false }, ERROR_INPUT },
    { "more segments than there are bytes", { 4, 62, 56, 60000, 2, false }, ERROR_INPUT },
    { "too many segments to count, and no section to say how many",
      { 4, 62, 56, 0xffff, 2, false },
      ERROR_INPUT },
    { "no segment", { 4, 62, 56, 0, 2, false }, ERROR_INPUT },
    { "too many files", { 4, 62, 56, SEGMENTS, 1 << 30, false }, ERROR_LIMIT },
    { "no thread", { 4, 62, 56, SEGMENTS, 2, true }, ERROR_INPUT },
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct buffer file;
        struct core_file core;
        struct error err;
        build(&file, &wrong[i].shape);
        if (open_file(&file, &core, &err))
            fail_msg("%s: opened", wrong[i].name);
        if (err.kind != wrong[i].kind)
            fail_msg("%s: %s", wrong[i].name, err.what);
        buffer_done(&file);
    }
}

/* A list of files that is shorter than it says, and one that overlaps: what makes sense counts. */
static void test_short_list(void **state)
{
    (void)state;
    struct buffer file;
    struct core_file core;
    struct shape shape = good;
    shape.file_count = 3;
    build(&file, &shape);
    assert_true(open_file(&file, &core, NULL));
    assert_true(core.memory.mapping_count >= 1);
    core_file_close(&core);
    buffer_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content),  cmocka_unit_test(test_fault),
        cmocka_unit_test(test_mappings), cmocka_unit_test(test_joined_mappings),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_wrong),    cmocka_unit_test(test_short_list),
        cmocka_unit_test(test_arm64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
