#include "symbolize/plt_stubs.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    STUB_BYTES = 16,
    SLOTS_MAX = 1 << 20,
    GLOB_DAT_X86_64 = 6,
    JUMP_SLOT_X86_64 = 7,
    IRELATIVE_X86_64 = 37,
    GLOB_DAT_AARCH64 = 1025,
    JUMP_SLOT_AARCH64 = 1026,
    IRELATIVE_AARCH64 = 1032,
    SYMBOL_BYTES = 24,
    RELA_BYTES = 24,
};

void plt_stubs_init(struct plt_stubs *stubs, const struct elf *e)
{
    *stubs = (struct plt_stubs){ .elf = e };
}

void plt_stubs_done(struct plt_stubs *stubs)
{
    free(stubs->slots);
    *stubs = (struct plt_stubs){ 0 };
}

static bool take_slot(void *user, const struct elf_relocation *r)
{
    struct plt_stubs *stubs = user;
    bool x86 = stubs->elf->machine == ELF_X86_64;
    bool chosen = r->type == (x86 ? IRELATIVE_X86_64 : IRELATIVE_AARCH64);
    if (!chosen && r->type != (x86 ? GLOB_DAT_X86_64 : GLOB_DAT_AARCH64) &&
        r->type != (x86 ? JUMP_SLOT_X86_64 : JUMP_SLOT_AARCH64))
        return true;
    if (stubs->count == SLOTS_MAX)
        return false;
    stubs->slots = mem_grow(stubs->slots, &stubs->capacity, stubs->count + 1, sizeof *stubs->slots);
    stubs->slots[stubs->count++] = (struct plt_slot){ r->addr, chosen ? 0 : r->symbol, r->addend };
    return true;
}

static int compare_slots(const void *a, const void *b)
{
    const struct plt_slot *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void read_slots(struct plt_stubs *stubs)
{
    static const char *const sections[] = { ".rela.plt", ".rela.dyn" };
    stubs->known = true;
    for (size_t i = 0; i < 2; i++) {
        const struct elf_section *section = elf_section_named(stubs->elf, sections[i]);
        struct buffer unpacked;
        struct source table;
        buffer_init(&unpacked, 64 << 20);
        if (section && elf_section_source(stubs->elf, section, &unpacked, &table, NULL))
            elf_relocations(&table, take_slot, stubs, NULL);
        buffer_done(&unpacked);
    }
    if (stubs->count)
        qsort(stubs->slots, stubs->count, sizeof *stubs->slots, compare_slots);
}

/* The slot of an x86-64 stub: the operand of its `jmp *disp32(%rip)`. */
static bool slot_x86_64(const uint8_t *code, size_t size, uint64_t addr, uint64_t *out)
{
    for (size_t i = 0; i + 6 <= size; i++)
        if (code[i] == 0xff && code[i + 1] == 0x25) {
            *out = addr + i + 6 + (uint64_t)(int64_t)(int32_t)load_u32le(code + i + 2);
            return true;
        }
    return false;
}

/* The slot of an aarch64 stub: adrp x16, PAGE; ldr x17, [x16, OFFSET]. */
static bool slot_aarch64(const uint8_t *code, size_t size, uint64_t addr, uint64_t *out)
{
    for (size_t i = 0; i + 8 <= size; i += 4) {
        uint32_t adrp = load_u32le(code + i), ldr = load_u32le(code + i + 4);
        if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
            continue;
        uint64_t pages = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
        if (pages & 1 << 20)
            pages |= ~(uint64_t)0 << 21;
        *out = ((addr + i) & ~(uint64_t)0xfff) + (pages << 12) + (uint64_t)(ldr >> 10 & 0xfff) * 8;
        return true;
    }
    return false;
}

/*
 * The symbol of a stub that only pushes the index of its relocation: what .plt holds when the jumps
 * are in .plt.sec (indirect branch tracking).
 */
static bool symbol_of_pushed_index(const struct elf *e, const uint8_t *code, size_t size,
                                   struct plt_slot *out)
{
    static const uint8_t endbr64_push[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x68 };
    const struct elf_section *section = elf_section_named(e, ".rela.plt");
    if (!section || size < 9 || memcmp(code, endbr64_push, sizeof endbr64_push) != 0)
        return false;
    uint64_t offset = (uint64_t)load_u32le(code + 5) * RELA_BYTES;
    uint8_t entry[RELA_BYTES];
    struct source table = source_part(&e->file, section->file_off, section->size_bytes);
    if (!source_read(&table, offset, entry, sizeof entry, NULL))
        return false;
    *out = (struct plt_slot){ .symbol = load_u32le(entry + 12), .resolver = load_u64le(entry + 16) };
    return true;
}

static bool stub_slot(struct plt_stubs *stubs, const uint8_t *code, size_t size, uint64_t addr,
                      struct plt_slot *out)
{
    uint64_t slot = 0;
    bool x86 = stubs->elf->machine == ELF_X86_64;
    if (!(x86 ? slot_x86_64(code, size, addr, &slot) : slot_aarch64(code, size, addr, &slot)))
        return x86 && symbol_of_pushed_index(stubs->elf, code, size, out);
    if (!stubs->known)
        read_slots(stubs);
    const struct plt_slot key = { .addr = slot };
    const struct plt_slot *found =
        stubs->count ? bsearch(&key, stubs->slots, stubs->count, sizeof key, compare_slots) : NULL;
    if (found)
        *out = *found;
    return found;
}

static bool dynamic_symbol_name(const struct elf *e, uint32_t index, struct buffer *name)
{
    const struct elf_section *symbols = elf_section_of_type(e, ELF_SECTION_DYNSYM);
    const struct elf_section *strings = elf_section_named(e, ".dynstr");
    if (!symbols || !strings || index == 0)
        return false;
    struct source table = source_part(&e->file, symbols->file_off, symbols->size_bytes);
    struct source text = source_part(&e->file, strings->file_off, strings->size_bytes);
    uint8_t entry[SYMBOL_BYTES];
    return source_read(&table, (uint64_t)index * SYMBOL_BYTES, entry, sizeof entry, NULL) &&
           elf_string(&text, load_u32le(entry), name);
}

bool plt_stubs_find(struct plt_stubs *stubs, uint64_t addr, struct buffer *name, struct plt_stub *out)
{
    const struct elf_section *section = elf_section_at(stubs->elf, addr);
    if (!section || strncmp(elf_section_name(stubs->elf, section), ".plt", 4) != 0)
        return false;
    uint64_t stub_bytes = section->entry_bytes == 8 ? 8 : STUB_BYTES;
    uint64_t start = addr - (addr - section->addr) % stub_bytes;
    uint8_t code[STUB_BYTES];
    struct source bytes = source_part(&stubs->elf->file, section->file_off, section->size_bytes);
    struct plt_slot slot = { 0 };
    bool found = source_read(&bytes, start - section->addr, code, (size_t)stub_bytes, NULL) &&
                 stub_slot(stubs, code, (size_t)stub_bytes, start, &slot);
    if (!found || !dynamic_symbol_name(stubs->elf, slot.symbol, name)) {
        buffer_clear(name);
        buffer_u8(name, 0);
    }
    *out = (struct plt_stub){ start, found && slot.symbol == 0 ? slot.resolver : 0 };
    return true;
}
