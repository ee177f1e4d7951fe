#include "read/eh_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    SECTION_BYTES_MAX = 128 << 20,
    KEPT_ROW_BYTES = 8,
    ENCODING_ABSOLUTE = 0x00,
    ENCODING_ULEB = 0x01,
    ENCODING_U16 = 0x02,
    ENCODING_U32 = 0x03,
    ENCODING_U64 = 0x04,
    ENCODING_SIGNED = 0x08,
    ENCODING_S16 = 0x0a,
    ENCODING_S32 = 0x0b,
    ENCODING_S64 = 0x0c,
    ENCODING_PC_RELATIVE = 0x10,
    ENCODING_INDIRECT = 0x80,
    ENCODING_OMITTED = 0xff,
    AUGMENTATION_MAX = 16,
    USUAL_ENCODING = ENCODING_PC_RELATIVE | ENCODING_S32,
    USUAL_BYTES = 17, /* of an FDE up to its augmentation */
};

/* The value of an encoded pointer, without what it is relative to. */
static uint64_t read_value(struct cursor *c, uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case ENCODING_ABSOLUTE:
    case ENCODING_SIGNED:
    case ENCODING_U64:
    case ENCODING_S64:
        return cursor_u64le(c);
    case ENCODING_ULEB:
        return cursor_varuint64(c);
    case ENCODING_U16:
        return cursor_u16le(c);
    case ENCODING_S16:
        return (uint64_t)(int64_t)(int16_t)cursor_u16le(c);
    case ENCODING_U32:
        return cursor_u32le(c);
    case ENCODING_S32:
        return (uint64_t)(int64_t)(int32_t)cursor_u32le(c);
    default:
        c->failed = true;
        return 0;
    }
}

/* An address; code is only ever given absolute or relative to the pointer's own place. */
static uint64_t read_addr(struct cursor *c, uint8_t encoding, uint64_t section_addr)
{
    uint64_t place = section_addr + c->pos;
    uint64_t value = read_value(c, encoding);
    switch (encoding & 0xf0) {
    case 0:
        return value;
    case ENCODING_PC_RELATIVE:
        return place + value;
    default:
        c->failed = true;
        return 0;
    }
}

/* The augmentation data of a CIE: one item for each letter of the string. */
static bool read_augmentation(struct cursor *c, struct span letters, uint64_t section_addr,
                              struct eh_cie *cie)
{
    if (letters.size == 0)
        return true;
    if (letters.data[0] != 'z')
        return false;
    cie->has_augmentation = true;
    uint64_t size = cursor_varuint64(c);
    if (size > cursor_left(c))
        return false;
    size_t end = c->pos + (size_t)size;
    for (size_t i = 1; i < letters.size && cursor_ok(c); i++) {
        switch (letters.data[i]) {
        case 'R':
            cie->pointer_encoding = cursor_u8(c);
            break;
        case 'L':
            cie->lsda_encoding = cursor_u8(c);
            break;
        case 'P': {
            uint8_t encoding = cursor_u8(c);
            if (encoding != ENCODING_OMITTED)
                read_addr(c, encoding & 0x7f & ~0x60, section_addr);
            break;
        }
        case 'S':
            cie->signal_frame = true;
            break;
        default: /* 'B' (pointer authentication), 'G' and later ones have no data */
            break;
        }
    }
    if (!cursor_ok(c) || c->pos > end)
        return false;
    cursor_seek(c, end);
    return true;
}

/*
 * The length of a record; *out_end is where it ends. False at the end of the section. A zero length
 * is a terminator; the linker may leave some in the middle.
 */
static bool read_length(struct cursor *c, uint64_t *out_end)
{
    uint64_t length = 0;
    while (length == 0) {
        if (cursor_left(c) < 4)
            return false;
        length = cursor_u32le(c);
    }
    if (length == UINT32_MAX)
        length = cursor_u64le(c);
    if (!cursor_ok(c) || length > cursor_left(c))
        return false;
    *out_end = c->pos + length;
    return true;
}

/* The augmentation string. FDEs may name two CIEs in turn, so a hostile one must not be long. */
static struct span read_letters(struct cursor *c)
{
    size_t left = cursor_left(c);
    struct cursor text = { .bytes = { c->bytes.data,
                                      c->pos + (left < AUGMENTATION_MAX ? left : AUGMENTATION_MAX) },
                           .pos = c->pos,
                           .failed = c->failed };
    struct span letters = cursor_zstring(&text);
    c->pos = text.pos;
    c->failed = text.failed;
    return letters;
}

static bool read_cie(struct span section, uint64_t section_addr, uint64_t offset, struct eh_cie *out)
{
    struct cursor c = cursor_over(section);
    cursor_seek(&c, offset);
    uint64_t end;
    if (!read_length(&c, &end))
        return false;
    c.bytes.size = (size_t)end;
    if (cursor_u32le(&c) != 0)
        return false;
    struct eh_cie cie = { .lsda_encoding = ENCODING_OMITTED };
    uint8_t version = cursor_u8(&c);
    struct span letters = read_letters(&c);
    if (version == 4)
        cursor_skip(&c, 2); /* sizes of addresses and of segments */
    else if (version != 1 && version != 3)
        return false;
    cie.code_align = cursor_varuint64(&c);
    cie.data_align = cursor_sleb64(&c);
    cie.return_register = version == 1 ? cursor_u8(&c) : cursor_varuint64(&c);
    if (!cursor_ok(&c) || !read_augmentation(&c, letters, section_addr, &cie))
        return false;
    cie.instructions = cursor_bytes(&c, cursor_left(&c));
    *out = cie;
    return true;
}

struct eh_frame_iterator eh_frame_over(struct span section, uint64_t section_addr)
{
    return (struct eh_frame_iterator){ .c = cursor_over(section), .section_addr = section_addr };
}

/* Makes it->cie the CIE at `offset`. */
static bool load_cie(struct eh_frame_iterator *it, uint64_t offset)
{
    if (it->cie_known && it->cie_off == offset)
        return true;
    it->cie_known = read_cie(it->c.bytes, it->section_addr, offset, &it->cie);
    it->cie_off = offset;
    return it->cie_known;
}

/* `c` is bounded by the record and stands behind its CIE pointer. */
static bool read_fde(struct cursor *c, const struct eh_frame_iterator *it, struct eh_fde *out)
{
    struct eh_fde fde = { .cie = it->cie };
    uint8_t encoding = it->cie.pointer_encoding;
    if (encoding & ENCODING_INDIRECT)
        return false;
    fde.start = read_addr(c, encoding, it->section_addr);
    fde.size_bytes = read_value(c, encoding & 0x0f);
    if (it->cie.has_augmentation)
        fde.augmentation = cursor_bytes(c, cursor_varuint64(c));
    if (!cursor_ok(c) || fde.size_bytes > UINT64_MAX - fde.start)
        return false;
    fde.instructions = cursor_bytes(c, cursor_left(c));
    *out = fde;
    return true;
}

/*
 * An FDE as compilers write nearly all: 32-bit length, of the CIE before, with addresses of 32 bits from
 * their own place and a short augmentation. False for any other, which is read step by step.
 */
static bool next_usual(struct eh_frame_iterator *it, struct eh_fde *out)
{
    struct cursor *c = &it->c;
    const uint8_t *record = c->bytes.data + c->pos;
    if (!it->cie_known || it->cie.pointer_encoding != USUAL_ENCODING || !it->cie.has_augmentation ||
        cursor_left(c) < USUAL_BYTES)
        return false;
    uint32_t length = load_u32le(record), pointer = load_u32le(record + 4);
    uint64_t start = it->section_addr + c->pos + 8 + (uint64_t)(int64_t)(int32_t)load_u32le(record + 8);
    uint64_t size_bytes = (uint64_t)(int64_t)(int32_t)load_u32le(record + 12);
    if (length < USUAL_BYTES - 4 || length > cursor_left(c) - 4 || pointer == 0 || pointer > c->pos + 4 ||
        c->pos + 4 - pointer != it->cie_off || size_bytes > UINT64_MAX - start || record[16] > 0x7f ||
        record[16] > length - (USUAL_BYTES - 4))
        return false;
    size_t before = USUAL_BYTES + record[16];
    *out = (struct eh_fde){ .cie = it->cie,
                            .start = start,
                            .size_bytes = size_bytes,
                            .instructions = span_of(record + before, length + 4 - before),
                            .augmentation = span_of(record + USUAL_BYTES, record[16]) };
    c->pos += (size_t)length + 4;
    return true;
}

bool eh_frame_next(struct eh_frame_iterator *it, struct eh_fde *out)
{
    uint64_t end;
    if (next_usual(it, out))
        return true;
    while (read_length(&it->c, &end)) {
        struct cursor record = it->c;
        record.bytes.size = (size_t)end;
        cursor_seek(&it->c, end);
        size_t pointer_at = record.pos;
        uint32_t pointer = cursor_u32le(&record);
        if (pointer == 0 && cursor_ok(&record))
            continue; /* a CIE, read when an FDE points at it */
        if (cursor_ok(&record) && pointer <= pointer_at && load_cie(it, pointer_at - pointer) &&
            read_fde(&record, it, out))
            return true;
        it->skipped++;
    }
    return false;
}

bool eh_fde_lsda(const struct eh_frame_iterator *it, const struct eh_fde *fde, uint64_t *out_addr)
{
    if (fde->cie.lsda_encoding == ENCODING_OMITTED || (fde->cie.lsda_encoding & ENCODING_INDIRECT) ||
        fde->augmentation.size == 0)
        return false;
    size_t begin = (size_t)(fde->augmentation.data - it->c.bytes.data);
    struct cursor c = { .bytes = { it->c.bytes.data, begin + fde->augmentation.size }, .pos = begin };
    *out_addr = read_addr(&c, fde->cie.lsda_encoding, it->section_addr);
    return cursor_ok(&c) && *out_addr != it->section_addr + begin; /* that is how none is written */
}

static int compare_ranges(const void *a, const void *b)
{
    const struct eh_range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->size_bytes < y->size_bytes ? -1 : x->size_bytes > y->size_bytes;
}

/* Linkers write functions in the order of their addresses, mostly. */
static void sort_ranges(struct eh_range *rows, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (compare_ranges(&rows[i - 1], &rows[i]) > 0) {
            qsort(rows, count, sizeof *rows, compare_ranges);
            return;
        }
}

bool eh_frame_load(const struct elf *e, struct buffer *out, uint64_t *out_addr, struct error *err)
{
    buffer_init(out, SECTION_BYTES_MAX);
    const struct elf_section *section = elf_section_named(e, ".eh_frame");
    if (!section)
        return error_set(err, ERROR_INPUT, "no .eh_frame section");
    *out_addr = section->addr;
    return elf_section_load(e, section, out, err);
}

/* About as many steps as rows: whoever asks for every relocation of an image has a few rows left to look at.
 */
static void count_steps(struct eh_ranges *ranges)
{
    if (ranges->count == 0)
        return;
    uint32_t last = ranges->rows[ranges->count - 1].start;
    while (last >> ranges->step_bits > ranges->count)
        ranges->step_bits++;
    ranges->step_count = (last >> ranges->step_bits) + 2;
    ranges->steps = mem_alloc(ranges->step_count, sizeof *ranges->steps);
    size_t row = 0;
    for (size_t i = 0; i < ranges->step_count; i++) {
        while (row < ranges->count && ranges->rows[row].start < (uint64_t)i << ranges->step_bits)
            row++;
        ranges->steps[i] = (uint32_t)row;
    }
}

bool eh_ranges_read(const struct elf *e, struct eh_ranges *out, struct error *err)
{
    struct buffer bytes;
    uint64_t addr;
    if (!eh_frame_load(e, &bytes, &addr, err)) {
        buffer_done(&bytes);
        return false;
    }
    struct eh_ranges ranges = { .base = elf_base_addr(e) };
    size_t capacity = 0;
    struct eh_frame_iterator it = eh_frame_over(buffer_span(&bytes), addr);
    for (struct eh_fde fde; eh_frame_next(&it, &fde);) {
        /* a function the linker dropped keeps an FDE that starts at 0 */
        if (fde.size_bytes == 0 || fde.start <= ranges.base || fde.start - ranges.base > UINT32_MAX ||
            fde.size_bytes > UINT32_MAX)
            continue;
        ranges.rows = mem_grow(ranges.rows, &capacity, ranges.count + 1, sizeof *ranges.rows);
        ranges.rows[ranges.count++] =
            (struct eh_range){ (uint32_t)(fde.start - ranges.base), (uint32_t)fde.size_bytes };
    }
    buffer_done(&bytes);
    sort_ranges(ranges.rows, ranges.count);
    count_steps(&ranges);
    *out = ranges;
    return true;
}

void eh_ranges_append(const struct eh_ranges *ranges, struct buffer *out)
{
    buffer_u32le(out, (uint32_t)ranges->count);
    for (size_t i = 0; i < ranges->count; i++) {
        buffer_u32le(out, ranges->rows[i].start);
        buffer_u32le(out, ranges->rows[i].size_bytes);
    }
}

bool eh_ranges_take(struct cursor *c, const struct elf *e, struct eh_ranges *out)
{
    uint32_t count = cursor_u32le(c);
    struct span rows = cursor_bytes(c, (uint64_t)count * KEPT_ROW_BYTES);
    struct eh_ranges ranges = { .base = elf_base_addr(e), .count = count };
    *out = (struct eh_ranges){ 0 };
    if (!cursor_ok(c))
        return false;
    ranges.rows = mem_alloc(count, sizeof *ranges.rows);
    for (size_t i = 0; i * KEPT_ROW_BYTES < rows.size; i++) {
        const uint8_t *row = rows.data + i * KEPT_ROW_BYTES;
        ranges.rows[i] = (struct eh_range){ load_u32le(row), load_u32le(row + 4) };
        if (i && compare_ranges(&ranges.rows[i - 1], &ranges.rows[i]) > 0) {
            eh_ranges_done(&ranges);
            return false;
        }
    }
    count_steps(&ranges);
    *out = ranges;
    return true;
}

void eh_ranges_done(struct eh_ranges *ranges)
{
    free(ranges->rows);
    free(ranges->steps);
    *ranges = (struct eh_ranges){ 0 };
}

bool eh_ranges_find(const struct eh_ranges *ranges, uint64_t addr, uint64_t *out_start, uint64_t *out_size)
{
    if (addr < ranges->base || addr - ranges->base > UINT32_MAX)
        return false;
    uint32_t wanted = (uint32_t)(addr - ranges->base);
    size_t low = 0, high = ranges->count; /* rows below `low` start at or before `wanted` */
    size_t step = wanted >> ranges->step_bits;
    if (step + 1 < ranges->step_count) {
        low = ranges->steps[step];
        high = ranges->steps[step + 1];
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->rows[middle].start <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || wanted - ranges->rows[low - 1].start >= ranges->rows[low - 1].size_bytes)
        return false;
    *out_start = ranges->base + ranges->rows[low - 1].start;
    *out_size = ranges->rows[low - 1].size_bytes;
    return true;
}
