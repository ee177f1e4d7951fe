#include "unwind/elf_unwind.h"

#include <stdlib.h>

#include "base/mem.h"
#include "unwind/x64_code.h"

enum {
    ELF_ENTRY_AT = 24, /* e_entry in the file header */
    HIJACK_STEPS = 8,
    SEGMENTS_MAX = 64,
    PAGE_BYTES = 4096,
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

static void find_hijack(const struct elf *e, struct elf_unwind *image)
{
    const struct eh_rows *rows = &image->rows;
    for (size_t i = 0; i < rows->count; i++) {
        uint8_t code[X64_HIJACK_BYTES];
        uint64_t file_off, addr = rows->base + rows->rows[i].start;
        if (!rows->rows[i].function || !has_hijack_steps(rows, i) ||
            !elf_file_off_of_addr(e, addr, &file_off) ||
            !source_read(&e->file, file_off, code, sizeof code, NULL) ||
            !x64_is_hijack(span_of(code, sizeof code)))
            continue;
        eh_rows_function(rows, addr, &image->hijack, &image->hijack_end);
        return;
    }
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
    struct eh_rows rows;
    uint8_t entry[8];
    if (!elf_open(file, &e, err))
        return false;
    if (!source_read(file, ELF_ENTRY_AT, entry, sizeof entry, err)) {
        elf_done(&e);
        return false;
    }
    if (!eh_rows_read(&e, &rows, NULL))
        rows = (struct eh_rows){ 0 };
    struct elf_unwind *image = mem_alloc(1, sizeof *image);
    image->rows = rows;
    image->entry = load_u64le(entry);
    keep_segments(&e, image);
    if (e.machine == ELF_X86_64)
        find_hijack(&e, image);
    elf_done(&e);
    *out = image;
    return true;
}

void elf_unwind_close(struct elf_unwind *image)
{
    if (!image)
        return;
    eh_rows_done(&image->rows);
    free(image->segments);
    free(image);
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
