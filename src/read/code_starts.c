#include "read/code_starts.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "read/x64_instruction.h"

enum {
    EXECUTABLE = 4, /* of a section's flags */
    CODE_BYTES_MAX = 256 << 20,
    CODE_SECTIONS_MAX = 64, /* each reference is compared with each */
    RELOCATIONS_BYTES_MAX = 256 << 20,
    STARTS_MAX = 4 << 20,
    PART_BYTES = 64 << 10, /* of code read at once */
    RELATIVE = 8,          /* R_X86_64_RELATIVE */
    ALIGNMENT = 16,        /* of functions, unless they follow each other at once */
    MUCH_CODE_BYTES = 8 << 20,
    PARTS_TOLD = 64, /* all but one of so many: nearly all */
};

struct search {
    const struct elf *elf;
    const struct elf_section *code[CODE_SECTIONS_MAX];
    size_t code_count;
    struct code_starts starts;
};

static const struct elf_section *code_section_at(const struct elf *e, uint64_t addr)
{
    const struct elf_section *section = elf_section_at(e, addr);
    return section && (section->flags & EXECUTABLE) ? section : NULL;
}

static bool is_code(const struct search *s, uint64_t addr)
{
    for (size_t i = 0; i < s->code_count; i++)
        if (addr >= s->code[i]->addr && addr - s->code[i]->addr < s->code[i]->size_bytes)
            return true;
    return false;
}

static void take(struct search *s, uint64_t addr)
{
    struct code_starts *to = &s->starts;
    if (to->count == STARTS_MAX || addr < to->base || addr - to->base > UINT32_MAX || !is_code(s, addr))
        return;
    to->rows = mem_grow(to->rows, &to->capacity, to->count + 1, sizeof *to->rows);
    to->rows[to->count++] = (uint32_t)(addr - to->base);
}

/* The instructions of a part of a section; returns how many bytes they have. */
static size_t take_part(struct search *s, struct span code, uint64_t addr, bool is_last)
{
    size_t at = 0;
    while (at < code.size && (is_last || code.size - at >= X64_INSTRUCTION_MAX)) {
        struct x64_instruction i;
        if (!x64_instruction_read(span_part(code, at, code.size - at), &i)) {
            at++; /* data, or an instruction that we do not know: soon we are in step again */
            continue;
        }
        at += i.size;
        if (i.kind == X64_CALL || i.kind == X64_ADDRESS_OF)
            take(s, addr + at + (uint64_t)i.value);
    }
    return at;
}

static bool take_section(struct search *s, const struct elf_section *section, struct error *err)
{
    AUTO_FREE uint8_t *part = mem_alloc(1, PART_BYTES);
    for (uint64_t off = 0; off < section->size_bytes;) {
        uint64_t left = section->size_bytes - off;
        size_t size = left < PART_BYTES ? (size_t)left : PART_BYTES;
        if (!source_read(&s->elf->file, section->file_off + off, part, size, err))
            return false;
        off += take_part(s, span_of(part, size), section->addr + off, size == left);
    }
    return true;
}

static bool take_pointer(void *user, const struct elf_relocation *r)
{
    if (r->type == RELATIVE)
        take(user, r->addend);
    return true;
}

static void take_pointers(struct search *s)
{
    const struct elf_section *section = elf_section_named(s->elf, ".rela.dyn");
    struct buffer unpacked;
    struct source table;
    buffer_init(&unpacked, RELOCATIONS_BYTES_MAX);
    if (section && elf_section_source(s->elf, section, &unpacked, &table, NULL))
        elf_relocations(&table, take_pointer, s, NULL);
    buffer_done(&unpacked);
}

/* The bytes of an instruction that only fills; 0 when it does something. */
static size_t padding_size(struct span code)
{
    struct x64_instruction i;
    size_t at = 0;
    while (at < code.size && (code.data[at] == 0x66 || code.data[at] == 0x2e)) /* prefixes */
        at++;
    if (at < code.size && (code.data[at] == 0x90 || code.data[at] == 0xcc)) /* nop, int3 */
        return at + 1;
    bool is_long = code.size - at >= 2 && code.data[at] == 0x0f && code.data[at + 1] == 0x1f;
    return is_long && x64_instruction_read(code, &i) ? i.size : 0;
}

static uint64_t behind_padding(const struct search *s, uint64_t addr)
{
    uint8_t bytes[ALIGNMENT];
    size_t size = ALIGNMENT - (size_t)(addr % ALIGNMENT), at = 0, step;
    uint64_t file_off;
    if (size == ALIGNMENT || !elf_file_off_of_addr(s->elf, addr, &file_off) ||
        !source_read(&s->elf->file, file_off, bytes, size, NULL))
        return addr;
    while (at < size && (step = padding_size(span_of(bytes + at, size - at))) > 0)
        at += step;
    return at < size ? addr : addr + size;
}

/* Behind a function whose size is told another begins, to which nothing may refer. */
static void take_next(struct search *s, uint64_t end)
{
    if (is_code(s, end))
        take(s, behind_padding(s, end));
}

static bool take_symbol(void *user, const struct elf_symbol *symbol)
{
    if (symbol->section && (symbol->type == ELF_SYMBOL_FUNCTION || symbol->type == ELF_SYMBOL_IFUNC))
        take(user, symbol->addr);
    if (symbol->section && symbol->type == ELF_SYMBOL_FUNCTION && symbol->size_bytes)
        take_next(user, symbol->addr + symbol->size_bytes);
    return true;
}

static void take_symbols(struct search *s)
{
    const struct elf_section *section = elf_section_of_type(s->elf, ELF_SECTION_DYNSYM);
    struct buffer unpacked;
    struct source table;
    buffer_init(&unpacked, RELOCATIONS_BYTES_MAX);
    if (section && elf_section_source(s->elf, section, &unpacked, &table, NULL))
        elf_symbols(&table, take_symbol, s, NULL);
    buffer_done(&unpacked);
}

static void take_functions(struct search *s, const struct eh_ranges *functions)
{
    for (size_t i = 0; i < functions->count; i++) {
        uint64_t start = functions->base + functions->rows[i].start,
                 end = start + functions->rows[i].size_bytes;
        take(s, start);
        if (i + 1 == functions->count || functions->base + functions->rows[i + 1].start >= end + ALIGNMENT)
            take_next(s, end);
    }
}

static int compare_starts(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_starts(struct code_starts *starts)
{
    size_t kept = 0;
    if (starts->count)
        qsort(starts->rows, starts->count, sizeof *starts->rows, compare_starts);
    for (size_t i = 0; i < starts->count; i++)
        if (i == 0 || starts->rows[i] != starts->rows[i - 1])
            starts->rows[kept++] = starts->rows[i];
    starts->count = kept;
}

static bool find_code(struct search *s, struct error *err)
{
    uint64_t code_bytes = 0;
    for (size_t i = 1; i < s->elf->section_count; i++) {
        const struct elf_section *section = &s->elf->sections[i];
        if (!(section->flags & EXECUTABLE) || section->type != ELF_SECTION_PROGBITS)
            continue;
        if (section->size_bytes > CODE_BYTES_MAX - code_bytes)
            return error_set(err, ERROR_LIMIT, "more than 256 MiB of code");
        if (s->code_count == CODE_SECTIONS_MAX)
            return error_set(err, ERROR_LIMIT, "more than %d sections of code", CODE_SECTIONS_MAX);
        code_bytes += section->size_bytes;
        s->code[s->code_count++] = section;
    }
    return true;
}

bool code_starts_are_worth_it(const struct elf *e, const struct eh_ranges *functions)
{
    struct search s = { .elf = e };
    uint64_t code_bytes = 0, told_bytes = 0;
    if (!find_code(&s, NULL))
        return false;
    for (size_t i = 0; i < s.code_count; i++)
        code_bytes += s.code[i]->size_bytes;
    for (size_t i = 0; i < functions->count; i++)
        told_bytes += functions->rows[i].size_bytes;
    return code_bytes <= MUCH_CODE_BYTES || told_bytes < code_bytes - code_bytes / PARTS_TOLD;
}

bool code_starts_read(const struct elf *e, const struct eh_ranges *functions, struct code_starts *out,
                      struct error *err)
{
    struct search s = { .elf = e, .starts.base = elf_base_addr(e) };
    if (e->machine != ELF_X86_64)
        return error_set(err, ERROR_UNSUPPORTED, "the code of this machine is not read");
    if (!find_code(&s, err))
        return false;
    for (size_t i = 0; i < s.code_count; i++)
        if (!take_section(&s, s.code[i], err)) {
            code_starts_done(&s.starts);
            return false;
        }
    take_pointers(&s);
    take_symbols(&s);
    take(&s, e->entry);
    take_functions(&s, functions);
    sort_starts(&s.starts);
    *out = s.starts;
    return true;
}

void code_starts_done(struct code_starts *starts)
{
    free(starts->rows);
    *starts = (struct code_starts){ 0 };
}

bool code_starts_before(const struct code_starts *starts, uint64_t addr, uint64_t *out_start)
{
    if (addr < starts->base || addr - starts->base > UINT32_MAX)
        return false;
    uint32_t wanted = (uint32_t)(addr - starts->base);
    size_t low = 0, high = starts->count; /* rows below `low` begin at or before `wanted` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (starts->rows[middle] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0)
        *out_start = starts->base + starts->rows[low - 1];
    return low > 0;
}

bool code_starts_find(const struct code_starts *starts, const struct elf *e,
                      const struct eh_ranges *functions, uint64_t addr, uint64_t *out_start)
{
    uint64_t start, told_start, told_size;
    if (!code_starts_before(starts, addr, &start) ||
        eh_ranges_find(functions, start, &told_start, &told_size) ||
        code_section_at(e, start) != code_section_at(e, addr))
        return false;
    *out_start = start;
    return true;
}
