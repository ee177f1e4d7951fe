#include "unwind/elf_unwind.h"

#include <stdlib.h>

#include "base/mem.h"
#include "unwind/x64_code.h"

enum {
    HIJACK_STEPS = 8,
    HIJACK_CANDIDATES = 64,
    SEGMENTS_MAX = 64,
    PAGE_BYTES = 4096,
    CODE_PER_TABLE = 64,        /* bytes: of code that has tables there are at most so many */
    BARE_CODE_BYTES = 16 << 20, /* more of it is not searched */
};

/* After each push of OnHijackTripThread its frame is a word larger: a cheap sieve before code is read. */
static bool has_hijack_steps(const struct eh_rows *rows, size_t i)
{
    static const uint8_t pushes[HIJACK_STEPS] = { 0, 1, 2, 3, 5, 7, 9, 11 };
    if (rows->count - i < HIJACK_STEPS)
        return false;
    for (unsigned step = 0; step < HIJACK_STEPS; step++) {
        const struct eh_row *row = &rows->rows[i + step];
        const struct frame_rule *rule = &rows->rules[row->rule];
        if (row->start - rows->rows[i].start != pushes[step] || rule->cfa != FRAME_CFA_OFFSET ||
            (step > 0) == row->function || rule->cfa_off != 8 * ((int32_t)step + 1))
            return false;
    }
    return true;
}

static bool find_hijack_in(const struct elf *e, const struct eh_rows *rows, struct elf_unwind *image)
{
    for (size_t i = 0; i < rows->count; i++) {
        uint8_t code[X64_HIJACK_BYTES];
        uint64_t file_off, addr = rows->base + rows->rows[i].start;
        if (!rows->rows[i].function || !has_hijack_steps(rows, i) ||
            !elf_file_off_of_addr(e, addr, &file_off) ||
            !source_read(&e->file, file_off, code, sizeof code, NULL) ||
            !x64_is_hijack(span_of(code, sizeof code)))
            continue;
        return eh_rows_function(rows, addr, &image->hijack, &image->hijack_end);
    }
    return false;
}

/*
 * By the instructions of its first two pushes, of a register that callers do not rely on and another one.
 * False when too many functions have them.
 */
static bool find_hijack(const struct elf *e, struct elf_unwind *image)
{
    /* advance 1, CFA at 16; advance 1, CFA at 24 */
    static const uint8_t pushes[] = { 0x41, 0x0e, 0x10, 0x41, 0x0e, 0x18 };
    uint64_t starts[HIJACK_CANDIDATES];
    size_t count =
        eh_index_with_bytes(image->index, span_of(pushes, sizeof pushes), starts, HIJACK_CANDIDATES);
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        const struct eh_rows *rows = eh_index_rows(image->index, starts[i]);
        found = rows && find_hijack_in(e, rows, image);
    }
    return found || count < HIJACK_CANDIDATES;
}

/* Functions one by one as they are needed, or all where that is not possible. */
static void open_rows(const struct elf *e, struct elf_unwind *image)
{
    bool hijacks = e->machine == ELF_X86_64;
    if (eh_index_open(e, &image->index, NULL) && (!hijacks || find_hijack(e, image)))
        return;
    eh_index_close(image->index);
    image->index = NULL;
    if (eh_rows_read(e, &image->rows, NULL) && hijacks)
        find_hijack_in(e, &image->rows, image);
}

/* All code is read: only where there is hardly a table. */
static void find_starts(const struct elf *e, struct elf_unwind *image)
{
    const struct elf_section *tables = elf_section_named(e, ".eh_frame");
    uint64_t code_bytes = 0, table_bytes = tables ? tables->size_bytes : 0;
    for (size_t i = 0; i < image->segment_count; i++)
        code_bytes += image->segments[i].executable ? image->segments[i].file_bytes : 0;
    if (code_bytes > BARE_CODE_BYTES || code_bytes / CODE_PER_TABLE <= table_bytes)
        return;
    struct eh_ranges functions = { 0 };
    eh_ranges_read(e, &functions, NULL);
    code_starts_read(e, &functions, &image->starts, NULL);
    eh_ranges_done(&functions);
}

static void find_ahead(const struct elf *e, struct elf_unwind *image)
{
    const struct elf_section *methods = elf_section_named(e, "__managedcode");
    image->ahead = methods ? methods->addr : 0;
    image->ahead_end = methods ? methods->addr + methods->size_bytes : 0;
}

static void keep_segments(const struct elf *e, struct elf_unwind *image)
{
    image->segments = mem_alloc(SEGMENTS_MAX, sizeof *image->segments);
    for (size_t i = 0; i < e->segment_count && image->segment_count < SEGMENTS_MAX; i++)
        if (e->segments[i].type == ELF_SEGMENT_LOAD)
            image->segments[image->segment_count++] = e->segments[i];
}

bool elf_unwind_open(const struct source *file, struct elf_unwind **out, struct error *err)
{
    struct elf e;
    if (!elf_open(file, &e, err))
        return false;
    struct elf_unwind *image = mem_alloc(1, sizeof *image);
    image->entry = e.entry;
    keep_segments(&e, image);
    open_rows(&e, image);
    find_starts(&e, image);
    find_ahead(&e, image);
    elf_done(&e);
    *out = image;
    return true;
}

void elf_unwind_close(struct elf_unwind *image)
{
    if (!image)
        return;
    eh_index_close(image->index);
    eh_rows_done(&image->rows);
    code_starts_done(&image->starts);
    free(image->segments);
    free(image);
}

/* NULL: nothing is known of the address. */
static const struct eh_rows *rows_at(const struct elf_unwind *image, uint64_t addr)
{
    return image->index ? eh_index_rows(image->index, addr) : &image->rows;
}

const struct frame_rule *elf_unwind_rule(const struct elf_unwind *image, uint64_t addr)
{
    static const struct frame_rule none = { 0 };
    const struct eh_rows *rows = rows_at(image, addr);
    return rows ? eh_rows_find(rows, addr) : &none;
}

bool elf_unwind_function(const struct elf_unwind *image, uint64_t addr, uint64_t *out_start,
                         uint64_t *out_end)
{
    const struct eh_rows *rows = rows_at(image, addr);
    return rows && eh_rows_function(rows, addr, out_start, out_end);
}

bool elf_unwind_register(const struct elf_unwind *image, uint64_t addr, uint8_t number,
                         struct frame_rule *out)
{
    return image->index && eh_index_register(image->index, addr, number, out);
}

bool elf_unwind_start(const struct elf_unwind *image, uint64_t addr, uint64_t *out_start)
{
    return code_starts_before(&image->starts, addr, out_start);
}

bool elf_unwind_bias(const struct elf_unwind *image, uint64_t start, uint64_t file_off, uint64_t *out_bias)
{
    for (unsigned executable_only = 2; executable_only-- > 0;)
        for (size_t i = 0; i < image->segment_count; i++) {
            const struct elf_segment *s = &image->segments[i];
            if (executable_only && !s->executable)
                continue;
            /* mappings begin at whole pages, segments need not */
            uint64_t first = s->file_off & ~(uint64_t)(PAGE_BYTES - 1);
            if (file_off < first || file_off - first >= s->file_bytes + (s->file_off - first))
                continue;
            *out_bias = start - (s->addr - (s->file_off - first) + (file_off - first));
            return true;
        }
    return false;
}
