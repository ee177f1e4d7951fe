#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "eh_frame_fixture.h"
#include "read/elf.h"
#include "unwind/unwinder.h"
#include "unwinder_check.h"

/*
 * A made-up process on arm64: an ELF image at 0x400000, linked at 0x1000; a jitted method at 0x700000 that
 * stores its pair in 32 bytes, with a funclet behind it; stubs at 0x800000. Every address follows a call but
 * where `code` says otherwise.
 */
enum {
    ELF_BIAS = 0x400000 - 0x1000,
    ELF_START = 0x400000,
    LEAF = ELF_START + 0x1000,   /* no frame at all */
    FRAMED = ELF_START + 0x1100, /* stp x29, x30, [sp, #-32]!: its CFA counts from sp, as gcc has it */
    ROOT = ELF_START + 0x1200,   /* return address undefined */
    SIGNED = ELF_START + 0x1300, /* paciasp, then as FRAMED; mov x29, sp: its CFA counts from x29 */
    RETURN = ELF_START + 0x1400, /* what a handler returns to: without unwind information */
    NOWHERE = ELF_START + 0x1600,
    ELF_END = ELF_START + 0x2000,
    METHOD = 0x700000,
    METHOD_BYTES = 0x100,
    FUNCLET = METHOD + METHOD_BYTES,
    STUBS = 0x800000,
    STACK = 0x7fff0000,
    STACK_WORDS = 96,
    SIGNAL_WORDS = 38, /* of struct siginfo and struct ucontext, below the registers */
    OPEN = 0x1000,     /* of the made-up header's base */
};

#define SIGNATURE (UINT64_C(0x5a) << 48)

struct piece {
    uint64_t addr;
    uint32_t code[4];
    size_t count;
};

struct world {
    struct elf_unwind elf;
    struct jit_unwind *jit;
    struct piece code;
    uint64_t stack[STACK_WORDS];
    struct unwind_frame frames[16];
};

static struct unwind_code world_find(void *user, uint64_t addr)
{
    struct world *w = user;
    if (addr >= ELF_START && addr < ELF_END)
        return (struct unwind_code){ .kind = UNWIND_CODE_ELF, .bias = ELF_BIAS, .elf = &w->elf };
    if (addr >= METHOD && addr < METHOD + 2 * METHOD_BYTES)
        return (struct unwind_code){ .kind = UNWIND_CODE_JITTED, .jit = w->jit };
    return (struct unwind_code){ .kind = addr >= STUBS && addr < STUBS + 0x1000 ? UNWIND_CODE_OTHER
                                                                                : UNWIND_CODE_NONE };
}

static bool world_read(void *user, uint64_t addr, void *into, size_t size)
{
    const struct world *w = user;
    for (size_t at = 0; at + 4 <= size; at += 4) {
        uint32_t word = 0x94000000; /* bl */
        uint64_t index = (addr + at - w->code.addr) / 4;
        if (addr + at == RETURN || addr + at == RETURN + 4)
            word = addr + at == RETURN ? 0xd2801168 : 0xd4000001;
        else if (addr + at >= w->code.addr && index < w->code.count)
            word = w->code.code[index];
        memcpy((uint8_t *)into + at, &word, 4);
    }
    return true;
}

/* What the method's start leads to: two functions, with a record each. */
static bool read_method(void *user, uint64_t addr, void *into, size_t size)
{
    (void)user;
    static const uint64_t header = 0x900000, base = METHOD - OPEN;
    static const uint32_t table[] = { 2, OPEN, 0x5000, OPEN + METHOD_BYTES, 0x5010 };
    /* stp fp, lr, [sp, #-32]!; mov fp, sp; ...; ldp fp, lr, [sp], #32; ret */
    static const uint8_t record[] = { METHOD_BYTES / 4, 0, 0x60, 0x08, 0xe1, 0x83, 0xe4, 0xe4 };
    uint8_t memory[0x80] = { 0 };
    uint64_t start = header + 0x20;
    if (addr == METHOD - 8 && size == 8) {
        memcpy(into, &header, 8);
        return true;
    }
    if (addr >= start && addr < start + sizeof memory) {
        memcpy(memory, table, sizeof table);
    } else {
        start = base + 0x5000;
        memcpy(memory, record, sizeof record);
        memcpy(memory + 0x10, record, sizeof record);
    }
    if (addr < start || addr - start > sizeof memory || size > sizeof memory - (addr - start))
        return false;
    memcpy(into, memory + (addr - start), size);
    return true;
}

static void compile(struct world *w)
{
    static const uint8_t framed[] = { 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3 };
    static const uint8_t root[] = { 0x07, 30 };
    static const uint8_t authenticated[] = { 0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29 };
    struct buffer s;
    buffer_init(&s, 1 << 16);
    size_t cie = eh_fixture_arm64_cie(&s, "zR");
    eh_fixture_fde(&s, cie, LEAF - ELF_BIAS, 0x40, NULL, 0);
    eh_fixture_fde(&s, cie, FRAMED - ELF_BIAS, 0x40, framed, sizeof framed);
    eh_fixture_fde(&s, cie, ROOT - ELF_BIAS, 0x40, root, sizeof root);
    eh_fixture_fde(&s, cie, SIGNED - ELF_BIAS, 0x40, authenticated, sizeof authenticated);
    eh_fixture_end(&s);
    assert_true(eh_rows_compile(buffer_span(&s), EH_FIXTURE_ADDR, 0x1000, ELF_AARCH64, &w->elf.rows, NULL));
    buffer_done(&s);
    assert_true(jit_unwind_read(&unwind_format_arm64, read_method, w, METHOD, &w->jit, NULL));
}

#define AT(word) (STACK + 8 * (uint64_t)(word))

struct world_case {
    const char *name;
    uint64_t ip, fp, link; /* SP is STACK */
    uint64_t words[16];    /* of the stack */
    struct piece code;
    uint64_t frames[8]; /* expected, 0 ends */
    enum unwind_end end;
    enum unwind_found last; /* how the outermost was found */
};

static const struct world_case cases[] = {
    { "a leaf under the root", LEAF + 4, 0, ROOT + 8, .frames = { LEAF + 4, ROOT + 8 },
      .end = UNWIND_END_ROOT, .last = UNWIND_FOUND_CFI },
    { "a signed link register", LEAF + 4, 0, ROOT + 8 + SIGNATURE, .frames = { LEAF + 4, ROOT + 8 },
      .end = UNWIND_END_ROOT, .last = UNWIND_FOUND_CFI },
    { "before the pair is stored", FRAMED, 0, ROOT + 8, .frames = { FRAMED, ROOT + 8 },
      .end = UNWIND_END_ROOT, .last = UNWIND_FOUND_CFI },
    { "framed under framed",
      FRAMED + 8,
      0,
      3,
      { AT(4), FRAMED + 12, 0, 0, 5, ROOT + 8 },
      .frames = { FRAMED + 8, FRAMED + 12, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "signed on the stack",
      SIGNED + 12,
      AT(2),
      3,
      { 0, 0, AT(8), SIGNED + 16 + SIGNATURE, 0, 0, 0, 0, 5, ROOT + 8 + SIGNATURE },
      .frames = { SIGNED + 12, SIGNED + 16, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "a caller that should have stored its pair",
      LEAF + 4,
      AT(2),
      LEAF + 8,
      { 0, 0, 5, ROOT + 8 },
      .frames = { LEAF + 4, LEAF + 8, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FRAME_POINTER },
    { "a linkage table without information", NOWHERE + 16, 0, ROOT + 8, .frames = { NOWHERE + 16, ROOT + 8 },
      .end = UNWIND_END_ROOT, .last = UNWIND_FOUND_STACK_TOP },
    { "its first entry has pushed",
      NOWHERE + 4,
      0,
      FRAMED + 8,
      { 0, 0, 5, ROOT + 8 },
      .code = { NOWHERE, { 0xa9bf7bf0 }, 1 },
      .frames = { NOWHERE + 4, FRAMED + 8, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "a thread just born", LEAF + 0x40, 0, ROOT + 8,
      .code = { LEAF + 0x3c, { 0xd4000001, 0xb4000040 }, 2 }, /* svc #0; cbz x0 */
      .frames = { LEAF + 0x40 }, .end = UNWIND_END_ROOT, .last = UNWIND_FOUND_LEAF },
    { "a method",
      METHOD + 0x50,
      AT(4),
      3,
      { 0, 0, 0, 0, AT(8), ROOT + 8 },
      .frames = { METHOD + 0x50, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a method's first instruction", METHOD, 9, ROOT + 8, .frames = { METHOD, ROOT + 8 },
      .end = UNWIND_END_ROOT, .last = UNWIND_FOUND_UNWIND_INFO },
    { "its pair was stored",
      METHOD + 4,
      9,
      3,
      { 7, ROOT + 8 },
      .frames = { METHOD + 4, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a method's return", METHOD + METHOD_BYTES - 4, 9, ROOT + 8,
      .frames = { METHOD + METHOD_BYTES - 4, ROOT + 8 }, .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a funclet called by a method",
      FUNCLET + 0x50,
      AT(0),
      3,
      { AT(4), METHOD + 0x50, 0, 0, AT(8), ROOT + 8 },
      .frames = { FUNCLET + 0x50, METHOD + 0x50, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a stub",
      STUBS + 8,
      AT(0),
      METHOD + 0x50,
      { AT(8), ROOT + 8 },
      .frames = { STUBS + 8, METHOD + 0x50, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "unknown code that called its like",
      STUBS + 8,
      AT(0),
      STUBS + 4,
      { AT(8), ROOT + 8 },
      .frames = { STUBS + 8, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FRAME_POINTER },
    { "behind a frame pointer SP is not known",
      STUBS + 8,
      AT(0),
      STUBS + 4,
      { AT(4), FRAMED + 8, 7, LEAF + 8, AT(8), ROOT + 8 },
      .frames = { STUBS + 8, FRAMED + 8, ROOT + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FRAME_POINTER },
    { "a call through nothing", 0x10, 0, ROOT + 8, .frames = { 0x10, ROOT + 8 }, .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_STACK_TOP },
    { "a return into nothing", LEAF + 4, 0, 5, .frames = { LEAF + 4 }, .end = UNWIND_END_BROKEN },
};

static struct unwind_result world_run(struct world *w, struct unwinder *u, const struct world_case *c,
                                      size_t words)
{
    struct unwind_registers registers = { .ip = c->ip, .sp = STACK, .fp = c->fp, .link = c->link };
    struct unwind_sample sample = { &registers, span_of(w->stack, 8 * words), NULL, 0 };
    w->code = c->code;
    return unwinder_run(u, &sample, w->frames, ARRAY_LEN(w->frames));
}

static struct unwinder *new_unwinder(struct world *w, const struct world_case *c)
{
    memset(w->stack, 0, sizeof w->stack);
    memcpy(w->stack, c->words, sizeof c->words);
    return unwinder_new(&(struct unwind_space){ &machine_arm64, world_find, world_read, w }, 6);
}

static void test_cases(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct world_case *c = &cases[i];
        struct unwinder *u = new_unwinder(w, c);
        for (unsigned again = 0; again < 2; again++) { /* the second time rules are remembered */
            struct unwind_result r = world_run(w, u, c, STACK_WORDS);
            unwinder_check(
                &(struct unwinder_expected){ c->name, c->frames, ARRAY_LEN(c->frames), c->end, c->last }, &r,
                w->frames);
        }
        unwinder_free(u);
    }
}

/* Every length of stack gives a beginning of the same frames. */
static void test_truncated(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t words = 0; words < 16; words++) {
            struct unwinder *u = new_unwinder(w, &cases[i]);
            struct unwind_result r = world_run(w, u, &cases[i], words);
            for (size_t k = 0; k < r.count; k++)
                if (w->frames[k].ip != cases[i].frames[k])
                    fail_msg("%s: with %zu words frame %zu is another", cases[i].name, words, k);
            unwinder_free(u);
        }
}

/* What was interrupted goes on exactly there, with its own link register. */
static void test_signal(void **state)
{
    struct world *w = *state;
    struct world_case c = { "", .ip = LEAF + 4, .link = RETURN };
    struct unwinder *u = new_unwinder(w, &c);
    uint64_t *registers = w->stack + SIGNAL_WORDS + 1;
    registers[29] = 7;
    registers[30] = ROOT + 8 + SIGNATURE;
    registers[31] = AT(80);
    registers[32] = FRAMED;
    struct unwind_result r = world_run(w, u, &c, STACK_WORDS);
    assert_int_equal(r.count, 4);
    assert_int_equal(r.end, UNWIND_END_ROOT);
    assert_int_equal(w->frames[1].ip, RETURN);
    assert_int_equal(w->frames[2].ip, FRAMED);
    assert_true(w->frames[2].exact);
    assert_int_equal(w->frames[3].ip, ROOT + 8);
    assert_false(w->frames[3].exact);
    r = world_run(w, u, &c, SIGNAL_WORDS); /* its frame is not all there */
    assert_int_equal(r.count, 2);
    assert_int_equal(r.end, UNWIND_END_CUT);
    unwinder_free(u);
}

/* Where only frame pointers were followed, nobody knows where the thread's stack begins. */
static void test_stack_end(void **state)
{
    struct world *w = *state;
    struct unwinder *u = new_unwinder(w, &cases[3]);
    assert_int_equal(world_run(w, u, &cases[3], STACK_WORDS).end_sp, AT(8));
    unwinder_free(u);
    size_t by_pointer = 0;
    while (cases[by_pointer].last != UNWIND_FOUND_FRAME_POINTER)
        by_pointer++;
    u = new_unwinder(w, &cases[by_pointer]);
    assert_int_equal(world_run(w, u, &cases[by_pointer], STACK_WORDS).end_sp, 0);
    unwinder_free(u);
}

static void test_registers(void **state)
{
    (void)state;
    uint64_t words[33];
    struct unwind_registers r;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        words[i] = 100 + i;
    assert_true(
        machine_registers_of_perf(&machine_arm64, machine_arm64.perf_mask, span_of(words, sizeof words), &r));
    assert_int_equal(r.fp, 129);
    assert_int_equal(r.link, 130);
    assert_int_equal(r.sp, 131);
    assert_int_equal(r.ip, 132);
    assert_int_equal(__builtin_popcountll(machine_arm64.perf_mask), machine_arm64.register_count);
    assert_false(machine_registers_of_perf(&machine_arm64, machine_arm64.perf_mask,
                                           span_of(words, sizeof words - 8), &r));
}

static int setup(void **state)
{
    static struct world world;
    compile(&world);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    eh_rows_done(&w->elf.rows);
    free(w->jit);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),     cmocka_unit_test(test_truncated), cmocka_unit_test(test_signal),
        cmocka_unit_test(test_stack_end), cmocka_unit_test(test_registers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
