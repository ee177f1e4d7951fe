#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "eh_frame_fixture.h"
#include "unwind/unwinder.h"
#include "unwinder_check.h"

/*
 * A made-up process: an ELF image at 0x400000, linked at 0x1000; a jitted method at 0x700000 of 0x100 bytes
 * whose frame is push rbp and 16 bytes, with a funclet behind it; stubs at 0x800000. All memory is nops but
 * what `code` says.
 */
enum {
    ELF_BIAS = 0x400000 - 0x1000,
    ELF_START = 0x400000,
    LEAF = ELF_START + 0x1000,    /* no frame at all */
    FRAMED = ELF_START + 0x1100,  /* push rbp; mov rbp, rsp */
    ROOT = ELF_START + 0x1200,    /* return address undefined */
    SIGNAL = ELF_START + 0x1300,  /* sigreturn */
    TRAP = ELF_START + 0x1400,    /* OnHijackTripThread */
    PUSHED = ELF_START + 0x1500,  /* 24 bytes of stack, no frame pointer; from 0x40 on the tables are stale */
    NOWHERE = ELF_START + 0x1600, /* no unwind information */
    ENTRY = ELF_START + 0x1700,
    WRAPPER = ELF_START + 0x1800, /* made by the runtime under a frame that a signal interrupted */
    COROUTINE = ELF_START + 0x1900,
    FORKER = ELF_START + 0x1a00, /* from its second byte on the return address is in a register */
    SAVED = ELF_START + 0x1b00,  /* SP is kept at SP + 16, at SP + 8 * r9 and at SP - 8, then in r10 */
    AHEAD = ELF_START + 0x1c00, /* a method compiled ahead: as PUSHED, but the tables never tell of epilogs */
    FAULT = ELF_START + 0x1d00, /* what a fault in such a method leads into, with 96 bytes of stack */
    ELF_END = ELF_START + 0x2000,
    METHOD = 0x700000,
    METHOD_BYTES = 0x100,
    FUNCLET = METHOD + 0x100,
    STUBS = 0x800000,
    STACK = 0x7fff0000,
    STACK_WORDS = 64,
    OTHER_STACK = 0x7ffe0000, /* of the same thread: with its own bytes only where they can be read */
    OTHER_WORDS = 16,
};

struct piece {
    uint64_t addr;
    uint8_t bytes[12];
    size_t size;
};

struct world {
    struct elf_unwind elf;
    struct jit_unwind *jit;
    uint64_t stack[STACK_WORDS];
    size_t stack_bytes; /* that the sample has */
    struct unwind_registers registers;
    uint64_t kernel[8];
    size_t kernel_count;
    struct piece code[4];
    uint64_t r9, r10;
    uint64_t other[OTHER_WORDS];
    bool can_read;         /* the other stack */
    const uint64_t *later; /* what the stack holds by now, or NULL */
    uint64_t root_sp;
    struct unwind_frame frames[32];
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

/* Every address follows a call but where a piece says otherwise. */
static bool world_read(void *user, uint64_t addr, void *into, size_t size)
{
    struct world *w = user;
    static const uint8_t call[] = { 0xe8, 0, 0, 0, 0 };
    uint8_t *to = into;
    memset(to, 0x90, size);
    if (size == 8)
        memcpy(to + 3, call, sizeof call);
    for (size_t i = 0; i < ARRAY_LEN(w->code); i++)
        for (size_t k = 0; k < w->code[i].size; k++)
            if (w->code[i].addr + k - addr < size)
                to[w->code[i].addr + k - addr] = w->code[i].bytes[k];
    return true;
}

/* What a method's start leads to. */
static bool read_method(void *user, uint64_t addr, void *into, size_t size)
{
    (void)user;
    static const uint64_t header = 0x900000;
    uint8_t memory[0x100] = { 0 };
    const uint32_t table[] = { 2, 0x1000, 0x1100, 0x5000, 0x1100, 0x1200, 0x5010 }; /* from 0x6ff000 */
    const uint8_t info[] = { 1, 5, 2, 0, 5, 0x12, 1, 0x50 };
    if (addr == METHOD - 8 && size == 8) {
        memcpy(into, &header, 8);
        return true;
    }
    memcpy(memory + 0x20, table, sizeof table);
    if (addr >= header && addr + size <= header + sizeof memory) {
        memcpy(into, memory + (addr - header), size);
        return true;
    }
    if (addr < METHOD - 0x1000 + 0x5000 || addr + size > METHOD - 0x1000 + 0x5000 + 0x80)
        return false;
    memset(memory, 0, sizeof memory);
    memcpy(memory, info, sizeof info);
    memcpy(memory + 0x10, info, sizeof info);
    memcpy(into, memory + (addr - (METHOD - 0x1000 + 0x5000)), size);
    return true;
}

static void compile(struct world *w)
{
    static const uint8_t framed[] = { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x7b, 0x0c, 7, 8 };
    static const uint8_t root[] = { 0x07, 16 };
    static const uint8_t signal[] = { 0x0f, 3, 0x77, 24, 0x06, 0x10, 6, 2, 0x77, 8, 0x10, 16, 2, 0x77, 16 };
    static const uint8_t trap[] = { 0x41, 0x0e, 16, 0x41, 0x0e, 24, 0x86, 3 };
    static const uint8_t pushed[] = { 0x41, 0x0e, 32 };
    static const uint8_t fault[] = { 0x41, 0x0e, 96 };
    static const uint8_t wrapper[] = { 0x0e, 0x88, 1, 0x90, 17, 0x41, 0x0e, 0x90, 1, 0x86, 18 };
    static const uint8_t forker[] = { 0x41, 0x0e, 0, 0x09, 16, 0 }; /* the one that `ax` fills */
    static const uint8_t saved[] = { 0x0f, 5,    0x77, 16,   0x06, 0x23, 8,    0x42, 0x0f, 10,   0x77,
                                     0,    0x79, 0,    0x38, 0x1e, 0x22, 0x06, 0x23, 8,    0x42, 0x0f,
                                     5,    0x77, 0x78, 0x06, 0x23, 8,    0x42, 0x0c, 10,   8 };
    struct buffer s;
    buffer_init(&s, 1 << 16);
    size_t plain = eh_fixture_cie(&s, "zR", NULL, 0), special = eh_fixture_cie(&s, "zRS", NULL, 0);
    eh_fixture_fde(&s, plain, LEAF - ELF_BIAS, 0x40, NULL, 0);
    eh_fixture_fde(&s, plain, FRAMED - ELF_BIAS, 0x40, framed, sizeof framed);
    eh_fixture_fde(&s, plain, ROOT - ELF_BIAS, 0x40, root, sizeof root);
    eh_fixture_fde(&s, special, SIGNAL - ELF_BIAS - 1, 0x10, signal, sizeof signal);
    eh_fixture_fde(&s, plain, TRAP - ELF_BIAS, 0x40, trap, sizeof trap);
    eh_fixture_fde(&s, plain, PUSHED - ELF_BIAS, 0x80, pushed, sizeof pushed);
    eh_fixture_fde(&s, plain, WRAPPER - ELF_BIAS, 0x10, wrapper, sizeof wrapper);
    eh_fixture_fde(&s, plain, COROUTINE - ELF_BIAS, 0x20, NULL, 0);
    eh_fixture_fde(&s, plain, FORKER - ELF_BIAS, 0x20, forker, sizeof forker);
    eh_fixture_fde(&s, plain, SAVED - ELF_BIAS, 0x20, saved, sizeof saved);
    eh_fixture_fde(&s, plain, AHEAD - ELF_BIAS, 0x80, pushed, sizeof pushed);
    eh_fixture_fde(&s, plain, FAULT - ELF_BIAS, 0x80, fault, sizeof fault);
    eh_fixture_end(&s);
    assert_true(eh_rows_compile(buffer_span(&s), EH_FIXTURE_ADDR, 0x1000, ELF_X86_64, &w->elf.rows, NULL));
    buffer_done(&s);
    w->elf.entry = ENTRY - ELF_BIAS;
    w->elf.hijack = TRAP - ELF_BIAS;
    w->elf.hijack_end = TRAP - ELF_BIAS + 0x40;
    w->elf.ahead = AHEAD - ELF_BIAS;
    w->elf.ahead_end = AHEAD - ELF_BIAS + 0x80;
    assert_true(jit_unwind_read(&unwind_format_x64, read_method, w, METHOD, &w->jit, NULL));
}

struct world_case {
    const char *name;
    uint64_t ip, fp; /* SP is STACK */
    uint64_t ax;
    uint64_t words[24]; /* of the stack */
    size_t word_count;  /* 0: all of it is there */
    uint64_t kernel[8];
    struct piece code;
    uint64_t frames[8]; /* expected, 0 ends */
    enum unwind_end end;
    enum unwind_found last; /* how the outermost was found */
};

#define AT(word) (STACK + 8 * (uint64_t)(word))

static const struct world_case cases[] = {
    { "a leaf under the root",
      LEAF + 4,
      0,
      1,
      { ROOT + 5 },
      .frames = { LEAF + 4, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "no frame pointer needed",
      PUSHED + 9,
      3,
      1,
      { 0, 0, 0, FRAMED + 9, 0, 0, ROOT + 5 },
      .frames = { PUSHED + 9, FRAMED + 9 },
      .end = UNWIND_END_BROKEN,
      .last = UNWIND_FOUND_CFI },
    { "framed under framed",
      FRAMED + 9,
      AT(1),
      1,
      { 0, AT(4), FRAMED + 9, 0, 0, ROOT + 5 },
      .frames = { FRAMED + 9, FRAMED + 9, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "rbp was popped: its slot is below SP",
      FRAMED + 0x3f,
      AT(3),
      1,
      { FRAMED + 9, 0, 0, 0, ROOT + 5 },
      .frames = { FRAMED + 0x3f, FRAMED + 9, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "a linkage table without information",
      NOWHERE + 4,
      0,
      1,
      { ROOT + 5 },
      .code = { NOWHERE + 4, { 0xff, 0x25, 1, 2, 3, 4 }, 6 },
      .frames = { NOWHERE + 4, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FLOW },
    { "its lazy half",
      NOWHERE + 5,
      0,
      1,
      { 7, ROOT + 5 },
      .code = { NOWHERE, { 0x68, 1, 0, 0, 0, 0xe9, 1, 1, 1, 1 }, 10 },
      .frames = { NOWHERE + 5, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_STACK_TOP },
    { "a leaf without tables",
      NOWHERE + 4,
      0,
      1,
      { 0x77, ROOT + 5 },
      .code = { NOWHERE + 6, { 0x48, 0x83, 0xc4, 8, 0xc3 }, 5 },
      .frames = { NOWHERE + 4, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FLOW },
    { "a caller without tables, rbp being no frame pointer",
      LEAF + 1,
      AT(3),
      1,
      { NOWHERE + 4, 7, AT(1), METHOD + 0x50, 0, 0, 0, ROOT + 5 },
      .code = { NOWHERE + 6, { 0x5b, 0x5d, 0xc3 }, 3 },
      .frames = { LEAF + 1, NOWHERE + 4, METHOD + 0x50, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "code without tables that leads to no return address",
      LEAF + 1,
      AT(4),
      1,
      { NOWHERE + 4, 7, 0, 0x77, 0, ROOT + 5 },
      .code = { NOWHERE + 6, { 0x5b, 0x5d, 0xc3 }, 3 },
      .frames = { LEAF + 1, NOWHERE + 4, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FRAME_POINTER },
    { "a thread just born",
      NOWHERE + 2,
      0,
      0,
      { 0 },
      .code = { NOWHERE, { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x13, 0x74, 1, 0xc3, 0x31, 0xed }, 12 },
      .frames = { NOWHERE + 2 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_LEAF },
    { "another system call that gave 0",
      NOWHERE + 2,
      0,
      0,
      { ROOT + 5 },
      .code = { NOWHERE, { 0x0f, 0x05, 0xc3 }, 3 },
      .frames = { NOWHERE + 2, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FLOW },
    { "its parent",
      NOWHERE + 2,
      0,
      77,
      { ROOT + 5 },
      .code = { NOWHERE, { 0x0f, 0x05 }, 2 },
      .frames = { NOWHERE + 2, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_STACK_TOP },
    { "behind a system call at a function's end",
      LEAF + 0x40,
      0,
      77,
      { ROOT + 5 },
      .code = { LEAF + 0x3e, { 0x0f, 0x05 }, 2 },
      .frames = { LEAF + 0x40, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "the loader's entry",
      LEAF + 1,
      0,
      1,
      { ENTRY + 8 },
      .frames = { LEAF + 1, ENTRY + 8 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "a method",
      METHOD + 0x50,
      9,
      1,
      { 0, 0, AT(9), ROOT + 5 },
      .frames = { METHOD + 0x50, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a method's first instruction",
      METHOD,
      9,
      1,
      { ROOT + 5 },
      .frames = { METHOD, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "its rbp was pushed",
      METHOD + 1,
      9,
      1,
      { AT(9), ROOT + 5 },
      .frames = { METHOD + 1, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a method's epilog",
      METHOD + 0x60,
      9,
      1,
      { AT(9), ROOT + 5 },
      .code = { METHOD + 0x60, { 0x5d, 0xc3 }, 2 },
      .frames = { METHOD + 0x60, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a method compiled ahead",
      AHEAD + 0x20,
      0,
      1,
      { 0, LEAF + 1, 0, ROOT + 5 },
      .code = { AHEAD + 0x22, { 0x5b, 0xc3 }, 2 },
      .frames = { AHEAD + 0x20, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "its epilog",
      AHEAD + 0x22,
      0,
      1,
      { 0, ROOT + 5, 0, LEAF + 1 },
      .code = { AHEAD + 0x22, { 0x5b, 0xc3 }, 2 },
      .frames = { AHEAD + 0x22, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "what a fault leads into",
      FAULT + 0x20,
      0,
      1,
      { 0, FRAMED, AT(8), AT(9), 0, 0, 0, 0, ROOT + 5, 0, 0, LEAF + 1 },
      .code = { FAULT, { 0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xf0 }, 7 },
      .frames = { FAULT + 0x20, FRAMED, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "as a caller",
      LEAF + 1,
      0,
      1,
      { FAULT + 0x20, 0, FRAMED, AT(8), AT(9), 0, 0, 0, ROOT + 5 },
      .code = { FAULT, { 0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xf0 }, 7 },
      .frames = { LEAF + 1, FAULT + 0x20, FRAMED, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "at its start, where nothing is kept yet",
      FAULT,
      AT(3),
      1,
      { LEAF + 1, 0, 0, 0, ROOT + 5 },
      .code = { FAULT, { 0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xf0 }, 7 },
      .frames = { FAULT, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FRAME_POINTER },
    { "a funclet called by a method",
      FUNCLET + 0x50,
      9,
      1,
      { 0, 0, AT(9), METHOD + 0x50, 0, 0, 0, ROOT + 5 },
      .frames = { FUNCLET + 0x50, METHOD + 0x50, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a stub",
      STUBS + 8,
      0,
      1,
      { METHOD + 0x50, 0, 0, 0, ROOT + 5 },
      .frames = { STUBS + 8, METHOD + 0x50, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a stub that pushed",
      STUBS + 8,
      0,
      1,
      { 5, ROOT + 5 },
      .frames = { STUBS + 8, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_STACK_TOP },
    { "unknown code with a frame",
      STUBS + 8,
      AT(1),
      1,
      { 5, 0, ROOT + 5 },
      .frames = { STUBS + 8, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FRAME_POINTER },
    { "in the trap",
      TRAP + 9,
      0,
      1,
      { 0, METHOD + 0x50, 0, 0, 0, ROOT + 5 },
      .frames = { TRAP + 9, METHOD + 0x50, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "on the way to the trap",
      METHOD + 0x50,
      9,
      1,
      { 0, 0, AT(5), TRAP, 0, 0, ROOT + 5 },
      .frames = { METHOD + 0x50, TRAP, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_FRAME_POINTER },
    { "a tail jump the tables are wrong about",
      PUSHED + 0x40,
      0,
      1,
      { METHOD + 0x50, 0, 0, 5, ROOT + 5 },
      .code = { PUSHED + 0x40, { 0xff, 0x25, 1, 2, 3, 4 }, 6 },
      .frames = { PUSHED + 0x40, METHOD + 0x50, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a tail jump the tables are right about",
      PUSHED + 0x40,
      0,
      1,
      { METHOD + 0x50, 0, 0, ROOT + 5 },
      .code = { PUSHED + 0x40, { 0xff, 0x25, 1, 2, 3, 4 }, 6 },
      .frames = { PUSHED + 0x40, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "a call through nothing",
      0x10,
      0,
      1,
      { ROOT + 5 },
      .frames = { 0x10, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_STACK_TOP },
    { "cut, nothing from the kernel",
      METHOD + 0x50,
      9,
      1,
      { 0, 0, AT(90) },
      3,
      .frames = { METHOD + 0x50 },
      .end = UNWIND_END_CUT,
      .last = UNWIND_FOUND_LEAF },
    { "cut, the kernel goes on to the root",
      METHOD + 0x50,
      9,
      1,
      { 0, 0, AT(90), FRAMED + 9 },
      4,
      { METHOD + 0x50, FRAMED + 9, FRAMED + 9, ROOT + 5 },
      .frames = { METHOD + 0x50, FRAMED + 9, FRAMED + 9, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_KERNEL },
    { "cut, the kernel's end is not the root",
      METHOD + 0x50,
      9,
      1,
      { 0, 0, AT(90), FRAMED + 9 },
      4,
      { METHOD + 0x50, FRAMED + 9, METHOD + 9, 5 },
      .frames = { METHOD + 0x50, FRAMED + 9, METHOD + 9 },
      .end = UNWIND_END_CUT,
      .last = UNWIND_FOUND_KERNEL },
    { "cut, the kernel took a word that was left over for a caller",
      METHOD + 0x50,
      AT(0),
      1,
      { AT(90), METHOD + 9, AT(90), FRAMED + 9 },
      4,
      { METHOD + 0x50, METHOD + 9, ROOT + 5 },
      .frames = { METHOD + 0x50, FRAMED + 9, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_KERNEL },
    { "no bytes at all",
      METHOD + 0x50,
      9,
      1,
      { 1 },
      SIZE_MAX,
      { METHOD + 0x50, ROOT + 5 },
      .frames = { METHOD + 0x50, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_KERNEL },
    { "a thunk for an indirect jump: where to jump is in a register",
      NOWHERE + 4,
      0,
      1,
      { NOWHERE + 0x20, ROOT + 5 },
      .code = { NOWHERE + 4, { 0x4c, 0x89, 0x1c, 0x24, 0xc3 }, 5 },
      .frames = { NOWHERE + 4, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_STACK_TOP },
    { "now on the stack",
      NOWHERE + 8,
      0,
      1,
      { LEAF, ROOT + 5 },
      .code = { NOWHERE + 4, { 0x4c, 0x89, 0x1c, 0x24, 0xc3 }, 5 },
      .frames = { NOWHERE + 8, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_STACK_TOP },
    { "a coroutine",
      LEAF + 4,
      3,
      1,
      { COROUTINE, 5, 5 },
      .code = { COROUTINE - 8, { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, 8 },
      .frames = { LEAF + 4, COROUTINE },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
    { "a function that is called before it begins is called by nobody we know",
      LEAF + 4,
      3,
      1,
      { COROUTINE, 5, 5 },
      .frames = { LEAF + 4, COROUTINE },
      .end = UNWIND_END_BROKEN,
      .last = UNWIND_FOUND_CFI },
    { "a fault at a method's first instruction, handled above it",
      LEAF + 4,
      3,
      1,
      { WRAPPER + 6, AT(9), METHOD, [19] = ROOT + 5 },
      .frames = { LEAF + 4, WRAPPER + 6, METHOD, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_UNWIND_INFO },
    { "a return into nothing",
      LEAF + 4,
      3,
      1,
      { 5 },
      .frames = { LEAF + 4 },
      .end = UNWIND_END_BROKEN,
      .last = UNWIND_FOUND_LEAF },
    { "a return address that was taken off the stack",
      FORKER + 4,
      0,
      PUSHED + 2,
      { 0, 0, 0, ROOT + 5 },
      .frames = { FORKER + 4, PUSHED + 2, ROOT + 5 },
      .end = UNWIND_END_ROOT,
      .last = UNWIND_FOUND_CFI },
};

static bool read_other(void *user, uint64_t addr, uint64_t *out)
{
    const struct world *w = user;
    if (!w->can_read || addr < OTHER_STACK || addr >= OTHER_STACK + 8 * (uint64_t)OTHER_WORDS)
        return false;
    *out = w->other[(addr - OTHER_STACK) / 8];
    return true;
}

static bool read_later(void *user, uint64_t addr, uint64_t *out)
{
    struct world *w = user;
    uint64_t word = (addr - STACK) / 8;
    if (word >= STACK_WORDS)
        return false;
    *out = w->later[word];
    return true;
}

static struct unwind_result world_run(struct world *w, struct unwinder *u, const struct world_case *c,
                                      size_t max)
{
    memset(w->stack, 0, sizeof w->stack);
    memcpy(w->stack, c->words, sizeof c->words);
    w->stack_bytes = c->word_count == SIZE_MAX ? 0 : c->word_count ? 8 * c->word_count : sizeof w->stack;
    w->registers = (struct unwind_registers){ .ip = c->ip, .sp = STACK, .fp = c->fp, .numbered = { c->ax } };
    w->registers.numbered[9] = w->r9;
    w->registers.numbered[10] = w->r10;
    w->code[0] = c->code;
    for (w->kernel_count = 0; c->kernel[w->kernel_count]; w->kernel_count++)
        w->kernel[w->kernel_count] = c->kernel[w->kernel_count];
    struct unwind_sample sample = { .registers = &w->registers,
                                    .stack = span_of(w->stack, w->stack_bytes),
                                    .kernel_chain = w->kernel,
                                    .kernel_count = w->kernel_count,
                                    .read_word = read_other,
                                    .read_later = w->later ? read_later : NULL,
                                    .root_sp = w->root_sp,
                                    .user = w };
    return unwinder_run(u, &sample, w->frames, max);
}

static void test_cases(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct world_case *c = &cases[i];
        struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
        struct unwinder *u = unwinder_new(&space, 6);
        for (unsigned again = 0; again < 2; again++) { /* the second time rules are remembered */
            struct unwind_result r = world_run(w, u, c, ARRAY_LEN(w->frames));
            unwinder_check(
                &(struct unwinder_expected){ c->name, c->frames, ARRAY_LEN(c->frames), c->end, c->last }, &r,
                w->frames);
        }
        unwinder_free(u);
    }
}

/* A leaf, what it returns to, FRAMED where it was interrupted, and the root. */
static void check_interrupted(const struct world *w, const struct unwind_result *r, uint64_t trampoline)
{
    assert_int_equal(r->count, 4);
    assert_int_equal(r->end, UNWIND_END_ROOT);
    assert_int_equal(w->frames[1].ip, trampoline);
    assert_true(w->frames[1].exact); /* no call leads back there */
    assert_int_equal(w->frames[2].ip, FRAMED);
    assert_true(w->frames[2].exact);
    assert_false(w->frames[3].exact);
    assert_int_equal(w->frames[3].ip, ROOT + 5);
}

/* What a signal interrupted goes on exactly there: a function's first byte belongs to that function. */
static void test_signal(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    /* handler: returns to the trampoline; there rbp is at rsp+8, the IP at rsp+16, SP at rsp+24 */
    struct world_case c = { "", .ip = LEAF + 4, .words = { SIGNAL, 0, AT(9), FRAMED, AT(6), 0, ROOT + 5 } };
    struct unwind_result r = world_run(w, u, &c, ARRAY_LEN(w->frames));
    check_interrupted(w, &r, SIGNAL);
    unwinder_free(u);
}

/* Hand-written code that keeps what SP was in its frame; its helper, the leaf, has a register for it. */
static void test_saved_sp(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    static const struct {
        const char *name;
        struct world_case made;
        uint64_t r9, r10;
        size_t count; /* frames; the last is the root */
    } tries[] = {
        { "in the frame", { "", .ip = SAVED + 1, .words = { 0, 0, AT(4), 0, ROOT + 5 } }, 0, 0, 2 },
        { "at an index", { "", .ip = SAVED + 3, .words = { 0, 0, 0, AT(5), 0, ROOT + 5 } }, 3, 0, 2 },
        { "below SP, and a copy",
          { "", .ip = SAVED + 5, .words = { 7, AT(9), 0, AT(6), 0, 0, ROOT + 5, 0, 0, 9 } },
          0,
          0,
          2 },
        { "the leaf's register",
          { "", .ip = LEAF + 4, .words = { SAVED + 8, 0, 0, ROOT + 5 } },
          0,
          AT(3),
          3 },
        { "which the leaf lost", { "", .ip = LEAF + 4, .words = { SAVED + 8, 0, 0, 0 } }, 0, AT(3), 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        w->r9 = tries[i].r9;
        w->r10 = tries[i].r10;
        struct unwind_result r = world_run(w, u, &tries[i].made, ARRAY_LEN(w->frames));
        bool whole = r.end == UNWIND_END_ROOT && w->frames[r.count - 1].ip == ROOT + 5;
        if (whole != (tries[i].count > 0) || (whole && r.count != tries[i].count))
            fail_msg("%s: %zu frames, end %d", tries[i].name, r.count, r.end);
    }
    w->r9 = w->r10 = 0;
    unwinder_free(u);
}

/* The same through a C library without tables: there the machine's rule tells. */
static void test_bare_signal(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    struct world_case c = { "", .ip = LEAF + 4,
                            .words = { NOWHERE, [16] = AT(9), [21] = AT(23), [22] = FRAMED, [23] = ROOT + 5 },
                            .code = { NOWHERE, { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 }, 9 } };
    struct unwind_result r = world_run(w, u, &c, ARRAY_LEN(w->frames));
    check_interrupted(w, &r, NOWHERE);
    unwinder_free(u);
}

/* A thread of musl's: a function that never returns, of which only the start is known, and clone(). */
static void test_bare_thread(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    uint32_t starts[] = { NOWHERE - ELF_BIAS, ENTRY - ELF_BIAS };
    w->elf.starts = (struct code_starts){ .rows = starts, .count = 2 };
    /* push rbp; sub rsp, 16; call *rax; then a call of what ends the thread, and another function's return */
    struct world_case c = { "", .ip = LEAF + 4, .fp = 7, .words = { NOWHERE + 7, 1, 2, 3, NOWHERE + 0x40 },
                            .code = {
                                NOWHERE, { 0x55, 0x48, 0x83, 0xec, 16, 0xff, 0xd0, 0xe8, 0, 0, 0, 0 }, 12 } };
    w->code[1] = (struct piece){ NOWHERE + 12, { 0xc3 }, 1 };
    w->code[2] = (struct piece){ NOWHERE + 0x40, { 0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05 }, 8 };
    struct unwind_result r = world_run(w, u, &c, ARRAY_LEN(w->frames));
    assert_int_equal(r.count, 3);
    assert_int_equal(r.end, UNWIND_END_ROOT);
    assert_int_equal(w->frames[2].ip, NOWHERE + 0x40);
    assert_int_equal(w->frames[2].found, UNWIND_FOUND_FLOW);
    assert_int_equal(r.end_sp, AT(5));
    w->elf.starts = (struct code_starts){ 0 };
    w->code[1] = w->code[2] = (struct piece){ 0 };
    unwinder_free(u);
}

/* What was interrupted is on another stack than the handler, or than what the runtime handles it with. */
static void test_other_stack(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    static const struct {
        const char *name;
        struct world_case made;
        size_t interrupted; /* frame */
        uint64_t ip;        /* of it */
    } others[] = {
        { "a handler",
          { "", .ip = LEAF + 4, .words = { SIGNAL, 0, OTHER_STACK, FRAMED + 9, OTHER_STACK } },
          2,
          FRAMED + 9 },
        { "the runtime",
          { "", .ip = LEAF + 4, .words = { WRAPPER + 6, OTHER_STACK, FRAMED + 9 } },
          2,
          FRAMED + 9 },
        { "the runtime, where SP is wanted",
          { "", .ip = LEAF + 4, .words = { WRAPPER + 6, OTHER_STACK, PUSHED + 9 }, .word_count = 3 },
          2,
          PUSHED + 9 },
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        const uint64_t words[] = { OTHER_STACK + 24, FRAMED + 9, 0, 7, ROOT + 5 };
        memcpy(w->other, words, sizeof words);
        for (unsigned can = 0; can < 2; can++) {
            struct unwinder *u = unwinder_new(&space, 6);
            w->can_read = can;
            struct unwind_result r = world_run(w, u, &others[i].made, ARRAY_LEN(w->frames));
            size_t at = others[i].interrupted;
            if (r.count != at + (can ? 3 : 1) || (r.end == UNWIND_END_ROOT) != can ||
                w->frames[at].ip != others[i].ip || !w->frames[at].exact)
                fail_msg("%s: %zu frames, end %d", others[i].name, r.count, r.end);
            unwinder_free(u);
        }
    }
    w->can_read = false;
}

/* No end: address 0 was called, and faulted. */
static void test_null_call(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    struct world_case c = { "", .ip = LEAF + 4, .words = { WRAPPER + 6, AT(9), 0, [19] = METHOD + 0x50 } };
    struct unwind_result r = world_run(w, u, &c, ARRAY_LEN(w->frames));
    assert_true(r.count >= 4);
    assert_int_equal(w->frames[2].ip, 0);
    assert_int_equal(w->frames[3].ip, METHOD + 0x50);
    unwinder_free(u);
}

/* A switch in code without tables: on top of its stack is a method's address, which nothing returns to. */
static void test_bare_frame(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    struct world_case c = { "", .ip = NOWHERE + 4, .fp = AT(2), .words = { COROUTINE, 0, AT(9), ROOT + 5 },
                            .code = { NOWHERE + 4, { 0xff, 0xe0 }, 2 } };
    w->code[1] = (struct piece){ COROUTINE - 8, { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, 8 };
    struct unwind_result r = world_run(w, u, &c, ARRAY_LEN(w->frames));
    w->code[1] = (struct piece){ 0 };
    assert_int_equal(r.count, 2);
    assert_int_equal(w->frames[1].ip, ROOT + 5);
    assert_int_equal(w->frames[1].found, UNWIND_FOUND_FRAME_POINTER);
    unwinder_free(u);
}

static void test_trap_is_marked(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    struct world_case c = { "", .ip = METHOD + 0x50, .words = { 0, 0, AT(5), TRAP, 0, 0, ROOT + 5 } };
    world_run(w, u, &c, ARRAY_LEN(w->frames));
    assert_false(w->frames[0].hijacked);
    assert_true(w->frames[1].hijacked);
    assert_false(w->frames[2].hijacked);
    unwinder_free(u);
}

/* A stack that lost its end is ended as others were. */
static void test_tails(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    struct world_case whole = { "", .ip = PUSHED + 9, .fp = AT(5),
                                .words = { 0, 0, 0, FRAMED + 9, 0, 7, ROOT + 5 } };
    struct world_case cut = { "", .ip = METHOD + 0x50, .words = { 0 }, .word_count = 1,
                              .kernel = { METHOD + 0x50, FRAMED + 9 } };
    /* the bytes end in the frame where the kernel's chain does */
    struct world_case last = whole, alone = whole;
    last.word_count = alone.word_count = 5;
    last.kernel[0] = PUSHED + 9;
    last.kernel[1] = FRAMED + 9;
    struct unwind_result r = world_run(w, u, &cut, ARRAY_LEN(w->frames));
    assert_int_equal(r.end, UNWIND_END_CUT);
    r = world_run(w, u, &last, ARRAY_LEN(w->frames));
    assert_int_equal(r.end, UNWIND_END_CUT);
    assert_int_equal(r.count, 2);
    r = world_run(w, u, &whole, ARRAY_LEN(w->frames));
    assert_int_equal(r.end, UNWIND_END_ROOT);
    unwinder_forget(u);
    for (unsigned i = 0; i < 2; i++) {
        r = world_run(w, u, i ? &last : &alone, ARRAY_LEN(w->frames));
        assert_int_equal(r.end, UNWIND_END_ROOT);
        assert_int_equal(r.count, 3);
        assert_int_equal(w->frames[2].ip, ROOT + 5);
        assert_int_equal(w->frames[2].found, UNWIND_FOUND_ROOT_TAIL);
    }
    /* who called a leaf is not learned: others call it as well */
    struct world_case leaf = { "", .ip = FRAMED + 8, .fp = AT(2), .words = { 0, 0, 7, ROOT + 5 } };
    r = world_run(w, u, &leaf, ARRAY_LEN(w->frames));
    assert_int_equal(r.end, UNWIND_END_ROOT);
    leaf.word_count = SIZE_MAX;
    r = world_run(w, u, &leaf, ARRAY_LEN(w->frames));
    assert_int_equal(r.end, UNWIND_END_CUT);
    assert_int_equal(r.count, 1);
    r = world_run(w, u, &cut, ARRAY_LEN(w->frames));
    assert_int_equal(r.end, UNWIND_END_ROOT);
    assert_int_equal(r.count, 3);
    assert_int_equal(w->frames[2].ip, ROOT + 5);
    assert_int_equal(w->frames[2].found, UNWIND_FOUND_ROOT_TAIL);
    unwinder_free(u);
}

/* A stack whose last bytes are in FRAMED's frame; `now` changes a word of what memory holds since. */
static const struct later_case {
    const char *name;
    size_t word;
    uint64_t now;
    uint64_t kernel[4];
    struct piece code;
    uint64_t root_sp;
    bool whole;
} later_cases[] = {
    { "all is there still", 0, FRAMED + 9, { 0 }, { 0 }, 0, true },
    { "so the kernel says", 0, FRAMED + 9, { LEAF + 4, FRAMED + 9, PUSHED + 9 }, { 0 }, STACK + 72, true },
    { "the kernel's chain went astray", 0, FRAMED + 9, { LEAF + 4, FRAMED + 9, 0x77 }, { 0 }, 0, true },
    { "the kernel took a word that was left over for a caller",
      7,
      METHOD + 9,
      { LEAF + 4, PUSHED + 9, METHOD + 9 },
      { 0 },
      0,
      true },
    { "that word has changed", 7, METHOD + 8, { LEAF + 4, PUSHED + 9, METHOD + 9 }, { 0 }, 0, false },
    { "FRAMED calls another", 0, FRAMED + 19, { 0 }, { 0 }, 0, false },
    { "FRAMED's caller has gone", 4, 0x77, { 0 }, { 0 }, 0, false },
    { "FRAMED has another caller", 4, METHOD + 0x50, { LEAF + 4, FRAMED + 9, PUSHED + 9 }, { 0 }, 0, false },
    { "it calls something else",
      0,
      FRAMED + 9,
      { 0 },
      { PUSHED + 4, { 0xe8, 0xf7, 0xfa, 0xff, 0xff }, 5 },
      0,
      false },
    { "it calls FRAMED", 0, FRAMED + 9, { 0 }, { PUSHED + 4, { 0xe8, 0xf7, 0xfb, 0xff, 0xff }, 5 }, 0, true },
    { "threads begin elsewhere", 0, FRAMED + 9, { 0 }, { 0 }, STACK + 80, false },
};

static void test_later(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(later_cases); i++) {
        const struct later_case *c = &later_cases[i];
        struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
        struct unwinder *u = unwinder_new(&space, 6);
        struct world_case cut = { "",
                                  .ip = LEAF + 4,
                                  .fp = AT(3),
                                  .word_count = 2,
                                  .code = c->code,
                                  .words = { FRAMED + 9, 0, 0, AT(6), PUSHED + 9, 0, 0, 0, ROOT + 5 } };
        uint64_t now[STACK_WORDS] = { 0 };
        memcpy(now, cut.words, sizeof cut.words);
        now[c->word] = c->now;
        memcpy(cut.kernel, c->kernel, sizeof c->kernel);
        w->later = now;
        w->root_sp = c->root_sp;
        struct unwind_result r = world_run(w, u, &cut, ARRAY_LEN(w->frames));
        bool is_whole = r.end == UNWIND_END_ROOT && r.count == 4 && w->frames[3].ip == ROOT + 5 &&
                        w->frames[3].found == UNWIND_FOUND_LATER && w->frames[1].found == UNWIND_FOUND_CFI;
        if (is_whole != c->whole || (!is_whole && r.end != UNWIND_END_CUT))
            fail_msg("%s: end %d, %zu frames", c->name, r.end, r.count);
        unwinder_free(u);
    }
    w->later = NULL;
    w->root_sp = 0;
}

static void test_depth(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    struct unwinder *u = unwinder_new(&space, 6);
    for (size_t max = 0; max < 3; max++) {
        struct unwind_result r = world_run(w, u, &cases[2], max);
        assert_int_equal(r.count, max);
        assert_int_equal(r.end, UNWIND_END_DEPTH);
    }
    unwinder_free(u);
}

/* Every length of stack gives a beginning of the same frames. */
static void test_truncated(void **state)
{
    struct world *w = *state;
    struct unwind_space space = { &machine_x86_64, world_find, world_read, w };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (cases[i].word_count || cases[i].end == UNWIND_END_BROKEN)
            continue;
        for (size_t words = 1; words < 16; words++) {
            struct world_case c = cases[i];
            struct unwinder *u = unwinder_new(&space, 6);
            c.word_count = words;
            struct unwind_result r = world_run(w, u, &c, ARRAY_LEN(w->frames));
            for (size_t k = 0; k < r.count; k++)
                if (w->frames[k].ip != c.frames[k])
                    fail_msg("%s: with %zu words frame %zu is another", c.name, words, k);
            unwinder_free(u);
        }
    }
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
        cmocka_unit_test(test_cases),          cmocka_unit_test(test_signal),
        cmocka_unit_test(test_saved_sp),       cmocka_unit_test(test_bare_signal),
        cmocka_unit_test(test_bare_thread),    cmocka_unit_test(test_other_stack),
        cmocka_unit_test(test_null_call),      cmocka_unit_test(test_tails),
        cmocka_unit_test(test_later),          cmocka_unit_test(test_depth),
        cmocka_unit_test(test_trap_is_marked), cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_bare_frame),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
