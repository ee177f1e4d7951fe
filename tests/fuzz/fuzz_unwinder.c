/*
 * The input is the sample: registers, then the kernel's chain, then the stack. Code is everywhere from
 * 0x10000 to 0x50000: native by a table that has every kind of rule, jitted by unwind data out of the input,
 * and unknown.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/unwinder.h"

enum { FRAMES_MAX = 64, CHAIN_MAX = 8, NATIVE = 0x10000, JITTED = 0x20000, OTHER = 0x30000, END = 0x40000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    struct elf_unwind elf;
    struct jit_unwind *jit;
    struct span bytes;
};

static struct unwind_code find(void *user, uint64_t addr)
{
    struct world *w = user;
    if (addr >= NATIVE && addr < JITTED)
        return (struct unwind_code){ .kind = UNWIND_CODE_ELF, .bias = 0, .elf = &w->elf };
    if (addr >= JITTED && addr < OTHER && w->jit)
        return (struct unwind_code){ .kind = UNWIND_CODE_JITTED, .jit = w->jit };
    return (struct unwind_code){ .kind =
                                     addr >= JITTED && addr < END ? UNWIND_CODE_OTHER : UNWIND_CODE_NONE };
}

/* Memory is the input, over and over. */
static bool read_memory(void *user, uint64_t addr, void *into, size_t size)
{
    const struct world *w = user;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)into)[i] = w->bytes.size ? w->bytes.data[(addr + i) % w->bytes.size] : 0;
    return addr % 7 != 0;
}

static bool read_later(void *user, uint64_t addr, uint64_t *out)
{
    return read_memory(user, addr, out, sizeof *out);
}

/* A row for each combination of kinds, 16 bytes apart. */
static void make_rows(struct elf_unwind *elf, struct eh_row *rows, struct frame_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rules[i] = (struct frame_rule){ .cfa = (uint8_t)(i % 5),
                                        .cfa_register = i % 3   ? FRAME_REGISTER_SP
                                                        : i % 2 ? FRAME_REGISTER_FP
                                                                : 10,
                                        .fp = (uint8_t)(i / 5 % 6),
                                        .ra = (uint8_t)(i / 30 % 6),
                                        .plt_edge = (uint8_t)(i % 16),
                                        .signal_frame = i % 11 == 0,
                                        .cfa_off = (int32_t)(i % 13) * 8 - 16,
                                        .fp_off = (int32_t)(i % 7) * 8 - 24,
                                        .ra_off = -8 };
        rows[i] = (struct eh_row){ (uint32_t)i * 16, (uint32_t)i, i % 4 == 0 };
    }
    rows[0].function = 1;
    rules[0] = (struct frame_rule){ 0 };
    elf->rows = (struct eh_rows){ NATIVE, rows, count, rules, count, 0 };
    elf->entry = NATIVE + 0x4000;
    elf->hijack = NATIVE + 0x200;
    elf->hijack_end = NATIVE + 0x280;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { RULES = 1024 };
    static struct eh_row rows[RULES];
    static struct frame_rule rules[RULES];
    struct world w = { .bytes = { data, size } };
    make_rows(&w.elf, rows, rules, RULES);
    struct unwind_registers registers = { 0 };
    uint64_t chain[CHAIN_MAX];
    const struct machine *machine = size % 2 ? &machine_arm64 : &machine_x86_64;
    size_t words = machine->register_count, head = 8 * words + sizeof chain;
    if (size < head)
        return 0;
    memcpy(registers.numbered, data, 8 * words);
    memcpy(chain, data + 8 * words, sizeof chain);
    machine_set_registers(machine, &registers);
    if (!jit_unwind_read(machine->managed, read_memory, &w, JITTED, &w.jit, NULL))
        w.jit = NULL;
    struct unwind_sample sample = { .registers = &registers,
                                    .stack = span_of(data + head, size - head),
                                    .kernel_chain = chain,
                                    .kernel_count = CHAIN_MAX,
                                    .read_later = size % 3 ? read_later : NULL,
                                    .root_sp = size % 5 ? 0 : chain[0],
                                    .user = &w };
    struct unwinder *u = unwinder_new(&(struct unwind_space){ machine, find, read_memory, &w }, 4);
    struct unwind_frame frames[FRAMES_MAX], again[FRAMES_MAX];
    struct unwind_result first = unwinder_run(u, &sample, frames, FRAMES_MAX);
    unwinder_forget(u);
    struct unwind_result second = unwinder_run(u, &sample, again, FRAMES_MAX);
    /* equal but for what was learned in between */
    if (first.count > FRAMES_MAX || first.count == 0 || second.count < first.count)
        __builtin_trap();
    unwinder_free(u);
    free(w.jit);
    return 0;
}
