#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "eh_frame_fixture.h"
#include "read/eh_index.h"
#include "unwind/unwinder.h"

/*
 * The resolver aligns SP and keeps what it was in RBX, which the binder saves and uses; the leaf knows
 * nothing of it.
 */
enum {
    HEADER_ADDR = 0x200000,
    BIAS = 0x7f0000000000 - 0x300000,
    RESOLVER = 0x300000, /* as linked, as are the next */
    BINDER = 0x300100,
    LEAF = 0x300200,
    CALLER = 0x300300, /* the thread's first function */
    FUNCTION_BYTES = 0x40,
    STACK = 0x7fff0000,
    STACK_WORDS = 32,
    FRAMES = 8,
};

#define IP(addr) (BIAS + (uint64_t)(addr))

struct world {
    struct elf_unwind elf;
    struct unwind_registers registers;
    uint64_t stack[STACK_WORDS];
    struct unwind_frame frames[FRAMES];
};

static struct unwind_code find(void *user, uint64_t addr)
{
    struct world *w = user;
    if (addr < IP(RESOLVER) || addr >= IP(CALLER + 0x100))
        return (struct unwind_code){ .kind = UNWIND_CODE_NONE };
    return (struct unwind_code){ .kind = UNWIND_CODE_ELF, .bias = BIAS, .elf = &w->elf };
}

/* Every address follows a call. */
static bool read_code(void *user, uint64_t addr, void *into, size_t size)
{
    (void)user, (void)addr;
    memset(into, 0x90, size);
    if (size == 8)
        memcpy((uint8_t *)into + 3, (const uint8_t[]){ 0xe8, 0, 0, 0, 0 }, 5);
    return true;
}

static void add_function(struct eh_sections *s, size_t cie, uint64_t start, const uint8_t *instructions,
                         size_t size)
{
    buffer_u32le(&s->header, (uint32_t)(start - HEADER_ADDR));
    buffer_u32le(&s->header, (uint32_t)(EH_FIXTURE_ADDR + s->frame.size - HEADER_ADDR));
    eh_fixture_fde(&s->frame, cie, start, FUNCTION_BYTES, instructions, size);
}

static void open_world(struct world *w)
{
    /* push %rbx, CFA is RBX + 32, above two words that were pushed before */
    static const uint8_t resolver[] = { 0x0e, 24, 0x41, 0x0e, 32, 0x83, 4, 0x43, 0x0c, 3, 32 };
    /* push %rbp; push %rbx; then sub $8, %rsp; from 0x20 on pop %rbx, which the tables do not say */
    static const uint8_t binder[] = { 0x41, 0x0e, 16, 0x86, 2,    0x41, 0x0e, 24,   0x83, 3,
                                      0x44, 0x0e, 32, 0x5a, 0x0e, 24,   0x41, 0x0e, 16 };
    static const uint8_t caller[] = { 0x07, 16 };
    struct eh_sections s = {
        .frame_addr = EH_FIXTURE_ADDR, .header_addr = HEADER_ADDR, .base = 0x1000, .machine = ELF_X86_64
    };
    *w = (struct world){ 0 };
    buffer_init(&s.frame, 1 << 16);
    buffer_init(&s.header, 1 << 16);
    size_t cie = eh_fixture_cie(&s.frame, "zR", NULL, 0);
    buffer_append(&s.header, "\x01\x1b\x03\x3b", 4);
    buffer_u32le(&s.header, (uint32_t)(EH_FIXTURE_ADDR - (HEADER_ADDR + 4)));
    buffer_u32le(&s.header, 4);
    add_function(&s, cie, RESOLVER, resolver, sizeof resolver);
    add_function(&s, cie, BINDER, binder, sizeof binder);
    add_function(&s, cie, LEAF, NULL, 0);
    add_function(&s, cie, CALLER, caller, sizeof caller);
    eh_fixture_end(&s.frame);
    assert_true(eh_index_over(&s, &w->elf.index, NULL));
}

static struct unwind_result unwind(struct world *w)
{
    struct unwind_space space = { &machine_x86_64, find, read_code, w };
    struct unwinder *u = unwinder_new(&space, 6);
    struct unwind_sample sample = { .registers = &w->registers, .stack = span_of(w->stack, sizeof w->stack) };
    struct unwind_result result = unwinder_run(u, &sample, w->frames, FRAMES);
    unwinder_free(u);
    return result;
}

#define WORD(i) (STACK + 8 * (uint64_t)(i))

/*
 * From SP: the leaf's return address, the binder's frame (a word, RBX, RBP, its return address), what the
 * resolver saved, and at word 16 what RBX was, two words and the caller's return address.
 */
static void fill_stack(struct world *w)
{
    memset(w->stack, 0, sizeof w->stack);
    w->stack[0] = IP(BINDER + 8);
    w->stack[2] = WORD(16);
    w->stack[4] = IP(RESOLVER + 8);
    w->stack[10] = IP(CALLER + 9); /* of a call before */
    w->stack[19] = IP(CALLER + 5);
    w->registers.sp = STACK;
    w->registers.ip = IP(LEAF + 4);
    w->registers.numbered[3] = 0x1234;
}

static void check_whole(struct world *w, size_t frames)
{
    struct unwind_result result = unwind(w);
    assert_int_equal(result.end, UNWIND_END_ROOT);
    assert_int_equal(result.count, frames);
    assert_true(w->frames[frames - 1].ip == IP(CALLER + 5));
    assert_int_equal(w->frames[frames - 1].found, UNWIND_FOUND_CFI);
    assert_true(w->frames[frames - 2].ip == IP(RESOLVER + 8));
}

static void test_saved_by_callee(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    fill_stack(&w);
    check_whole(&w, 4);
    eh_index_close(w.elf.index);
}

/* The leaf is the binder itself: it has changed RBX, or gives it back and its slot is below SP. */
static void test_changed_by_leaf(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    fill_stack(&w);
    w.registers.ip = IP(BINDER + 8);
    memmove(w.stack, w.stack + 1, sizeof w.stack - 8);
    w.registers.sp = WORD(1);
    check_whole(&w, 3);

    memmove(w.stack, w.stack + 2, sizeof w.stack - 16); /* one word of the frame is left */
    w.registers.sp = WORD(3);
    w.registers.ip = IP(BINDER + 0x21);
    w.registers.numbered[3] = WORD(16);
    check_whole(&w, 3);
    eh_index_close(w.elf.index);
}

/* What was saved leads to no return address, or behind the bytes that there are: the stack ends there. */
static void test_led_astray(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    fill_stack(&w);
    w.stack[2] = WORD(12);
    assert_int_equal(unwind(&w).end, UNWIND_END_BROKEN);
    w.stack[2] = WORD(STACK_WORDS);
    assert_int_equal(unwind(&w).end, UNWIND_END_CUT);
    eh_index_close(w.elf.index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved_by_callee),
        cmocka_unit_test(test_changed_by_leaf),
        cmocka_unit_test(test_led_astray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
