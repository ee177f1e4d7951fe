#include "read/eh_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/eh_frame.h"

enum {
    HEADER_BYTES = 12,
    ENTRY_BYTES = 8,
    VERSION = 1,
    POINTER_PC_RELATIVE_S32 = 0x1b, /* of the section; DW_EH_PE_* */
    COUNT_U32 = 0x03,
    TABLE_HEADER_RELATIVE_S32 = 0x3b,
    HEADER_SECTION_MAX = 64 << 20,
    SEARCH_BYTES = 4096,
    SEARCH_FIRST = 4, /* bytes of what is sought that are looked for at first */
};

struct eh_index {
    struct eh_sections sections;
    const uint8_t *table; /* in the header; an entry is the start and where the FDE lies, from the header */
    size_t count;
    struct eh_rows **functions; /* by entry; NULL: not asked for yet */
    size_t compiled;
    bool has_all;
    struct eh_rows all;
};

static uint64_t entry_start(const struct eh_index *index, size_t i)
{
    return index->sections.header_addr +
           (uint64_t)(int64_t)(int32_t)load_u32le(index->table + i * ENTRY_BYTES);
}

/* Where the FDE lies in the section; past its end when the table is wrong. */
static uint64_t entry_offset(const struct eh_index *index, size_t i)
{
    return index->sections.header_addr +
           (uint64_t)(int64_t)(int32_t)load_u32le(index->table + i * ENTRY_BYTES + 4) -
           index->sections.frame_addr;
}

/* The entry that starts last of those at or before `addr`; `count` when all start later. */
static size_t entry_before(const struct eh_index *index, uint64_t addr)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entry_start(index, middle) <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : index->count;
}

static void sections_done(struct eh_sections *sections)
{
    buffer_done(&sections->frame);
    buffer_done(&sections->header);
}

bool eh_index_over(struct eh_sections *sections, struct eh_index **out, struct error *err)
{
    struct cursor c = cursor_over(buffer_span(&sections->header));
    bool usual = cursor_u8(&c) == VERSION && cursor_u8(&c) == POINTER_PC_RELATIVE_S32 &&
                 cursor_u8(&c) == COUNT_U32 && cursor_u8(&c) == TABLE_HEADER_RELATIVE_S32;
    uint64_t frame_addr = sections->header_addr + 4 + (uint64_t)(int64_t)(int32_t)cursor_u32le(&c);
    uint64_t count = cursor_u32le(&c);
    struct span table = cursor_bytes(&c, count * ENTRY_BYTES);
    if (!usual || !cursor_ok(&c) || count == 0 || frame_addr != sections->frame_addr) {
        sections_done(sections);
        return error_set(err, ERROR_UNSUPPORTED, "no .eh_frame_hdr that can be searched");
    }
    struct eh_index *index = mem_alloc(1, sizeof *index);
    index->sections = *sections;
    index->table = table.data;
    index->count = (size_t)count;
    index->functions = mem_alloc(index->count, sizeof *index->functions);
    *out = index;
    return true;
}

bool eh_index_open(const struct elf *e, struct eh_index **out, struct error *err)
{
    const struct elf_section *header = elf_section_named(e, ".eh_frame_hdr");
    struct eh_sections sections = { .base = elf_base_addr(e), .machine = e->machine };
    if (!header)
        return error_set(err, ERROR_UNSUPPORTED, "no .eh_frame_hdr section");
    sections.header_addr = header->addr;
    buffer_init(&sections.header, HEADER_SECTION_MAX);
    if (!eh_frame_load(e, &sections.frame, &sections.frame_addr, err) ||
        !elf_section_load(e, header, &sections.header, err)) {
        sections_done(&sections);
        return false;
    }
    return eh_index_over(&sections, out, err);
}

static void free_functions(struct eh_index *index)
{
    for (size_t i = 0; index->functions && i < index->count; i++) {
        if (!index->functions[i])
            continue;
        eh_rows_done(index->functions[i]);
        free(index->functions[i]);
    }
    free(index->functions);
    index->functions = NULL;
}

void eh_index_close(struct eh_index *index)
{
    if (!index)
        return;
    free_functions(index);
    eh_rows_done(&index->all);
    sections_done(&index->sections);
    free(index);
}

/* Who asks for so many asks for more. */
static void compile_all(struct eh_index *index)
{
    const struct eh_sections *s = &index->sections;
    index->compiled = 0; /* where there are too many, it is tried again after as many more */
    index->has_all =
        eh_rows_compile(buffer_span(&s->frame), s->frame_addr, s->base, s->machine, &index->all, NULL);
    if (index->has_all) {
        free_functions(index);
        buffer_done(&index->sections.frame);
        buffer_init(&index->sections.frame, 0);
    }
}

static const struct eh_rows *compile(struct eh_index *index, size_t entry)
{
    const struct eh_sections *s = &index->sections;
    struct eh_rows *rows = mem_alloc(1, sizeof *rows);
    /* one that cannot be read has no rows, and is not read again */
    eh_rows_compile_at(buffer_span(&s->frame), s->frame_addr, entry_offset(index, entry), s->base, s->machine,
                       rows);
    index->functions[entry] = rows;
    index->compiled++;
    return rows;
}

const struct eh_rows *eh_index_rows(struct eh_index *index, uint64_t addr)
{
    if (!index->has_all && index->compiled >= EH_INDEX_FUNCTIONS_MAX)
        compile_all(index);
    if (index->has_all)
        return &index->all;
    size_t entry = entry_before(index, addr);
    if (entry == index->count)
        return NULL;
    return index->functions[entry] ? index->functions[entry] : compile(index, entry);
}

bool eh_index_register(const struct eh_index *index, uint64_t addr, uint8_t number, struct frame_rule *out)
{
    const struct eh_sections *s = &index->sections;
    size_t entry = index->has_all ? index->count : entry_before(index, addr);
    struct eh_rows rows;
    if (entry == index->count)
        return false;
    eh_rows_compile_register_at(buffer_span(&s->frame), s->frame_addr, entry_offset(index, entry), s->base,
                                s->machine, number, &rows);
    *out = *eh_rows_find(&rows, addr);
    eh_rows_done(&rows);
    return out->cfa != FRAME_CFA_NONE && out->cfa != FRAME_CFA_UNKNOWN;
}

/* The start of the function whose FDE is the last that begins at or before an offset in the section. */
static uint64_t function_of(const struct eh_index *index, uint64_t offset)
{
    uint64_t start = 0, best = 0;
    for (size_t i = 0; i < index->count; i++) {
        uint64_t at = entry_offset(index, i);
        if (at <= offset && at >= best) {
            best = at;
            start = entry_start(index, i);
        }
    }
    return start;
}

/* Whether the first bytes of what is sought begin in a block. A loop without an end before its own, which the
 * compiler makes of vectors: several times as fast as memmem(). */
static bool may_begin(const uint8_t *block, size_t size, const uint8_t first[SEARCH_FIRST])
{
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= (block[i] == first[0]) & (block[i + 1] == first[1]) & (block[i + 2] == first[2]) &
               (block[i + 3] == first[3]);
    return any;
}

/* memmem(), for bytes that are rare. */
static const uint8_t *find_bytes(struct span in, struct span sought)
{
    size_t from = 0;
    while (sought.size >= SEARCH_FIRST && in.size - from >= SEARCH_BYTES + SEARCH_FIRST) {
        size_t size = SEARCH_BYTES + sought.size - 1;
        if (size > in.size - from)
            size = in.size - from;
        const uint8_t *block = in.data + from;
        const uint8_t *found = may_begin(block, SEARCH_BYTES, sought.data)
                                   ? memmem(block, size, sought.data, sought.size)
                                   : NULL;
        if (found)
            return found;
        from += SEARCH_BYTES;
    }
    return memmem(in.data + from, in.size - from, sought.data, sought.size);
}

size_t eh_index_with_bytes(const struct eh_index *index, struct span bytes, uint64_t *out_starts, size_t max)
{
    struct span section = buffer_span(&index->sections.frame), rest = section;
    const uint8_t *at;
    size_t found = 0;
    while (found < max && rest.size && (at = find_bytes(rest, bytes))) {
        size_t offset = (size_t)(at - section.data);
        out_starts[found++] = function_of(index, offset);
        rest = span_part(section, offset + 1, section.size - offset - 1);
    }
    return found;
}
