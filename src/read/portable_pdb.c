#include "read/portable_pdb.h"

#include "read/pe_debug.h"

enum {
    DOCUMENT_NAME = 0,
    METHOD_DOCUMENT = 0,
    METHOD_SEQUENCE_POINTS = 1,
    PATH_BYTES_MAX = 4096,
    LINE_MAX = 0x1fffffff,
};

bool portable_pdb_open(struct span bytes, struct portable_pdb *out, struct error *err)
{
    struct portable_pdb pdb;
    if (!ecma_metadata_open(bytes, &pdb.md, err))
        return false;
    if (pdb.md.pdb.size < PDB_ID_BYTES)
        return error_set(err, ERROR_INPUT, "metadata of an assembly, not of a PDB");
    *out = pdb;
    return true;
}

struct span portable_pdb_id(const struct portable_pdb *pdb)
{
    return span_part(pdb->md.pdb, 0, PDB_ID_BYTES);
}

/* ECMA-335 II.23.2, signed: the sign is rotated into the lowest bit, within the width of the number. */
static uint32_t cursor_ecma_int(struct cursor *c)
{
    size_t start = c->pos;
    uint32_t coded = cursor_ecma_uint(c);
    uint32_t sign = c->pos - start == 1 ? 0x40 : c->pos - start == 2 ? 0x2000 : 0x10000000;
    return (coded >> 1) - (coded & 1 ? sign : 0);
}

/* One method's points, in the order of their IL offsets. */
struct sequence {
    struct cursor c;
    uint32_t il_offset, document, line;
    bool started, placed; /* had a point; had a visible one */
    bool hidden;          /* the point at hand */
};

static bool sequence_begin(const struct portable_pdb *pdb, uint32_t method_row, struct sequence *s)
{
    const struct ecma_metadata *md = &pdb->md;
    uint32_t blob = ecma_cell(md, ECMA_METHOD_DEBUG_INFORMATION, method_row, METHOD_SEQUENCE_POINTS);
    *s = (struct sequence){ .c = cursor_over(ecma_blob(md, blob)) };
    s->document = ecma_cell(md, ECMA_METHOD_DEBUG_INFORMATION, method_row, METHOD_DOCUMENT);
    if (blob == 0 || s->c.bytes.size == 0)
        return false;
    cursor_ecma_uint(&s->c); /* signature of the locals */
    if (s->document == 0)
        s->document = cursor_ecma_uint(&s->c);
    return cursor_ok(&s->c);
}

static void sequence_place(struct sequence *s)
{
    uint32_t lines = cursor_ecma_uint(&s->c);
    uint32_t columns = lines ? cursor_ecma_int(&s->c) : cursor_ecma_uint(&s->c);
    s->hidden = lines == 0 && columns == 0;
    if (s->hidden)
        return;
    if (s->placed) {
        s->line += cursor_ecma_int(&s->c);
        cursor_ecma_int(&s->c);
    } else {
        s->line = cursor_ecma_uint(&s->c);
        cursor_ecma_uint(&s->c);
    }
    s->placed = true;
}

/* The next point; false at the end, or where the blob is damaged. */
static bool sequence_next(struct sequence *s)
{
    while (cursor_left(&s->c)) {
        uint32_t step = cursor_ecma_uint(&s->c);
        if (step == 0 && s->started) {
            s->document = cursor_ecma_uint(&s->c);
            continue;
        }
        s->il_offset += step;
        s->started = true;
        sequence_place(s);
        return cursor_ok(&s->c);
    }
    return false;
}

bool portable_pdb_find(const struct portable_pdb *pdb, uint32_t method_row, uint32_t il_offset,
                       struct pdb_line *out)
{
    struct sequence s;
    struct pdb_line found = { 0 };
    if (!sequence_begin(pdb, method_row, &s))
        return false;
    while (sequence_next(&s) && (s.il_offset <= il_offset || !found.line))
        if (!s.hidden && s.line && s.line <= LINE_MAX)
            found = (struct pdb_line){ s.document, s.line };
    if (!cursor_ok(&s.c) || !found.line)
        return false;
    *out = found;
    return true;
}

bool portable_pdb_await(const struct portable_pdb *pdb, uint32_t method_row, uint32_t index,
                        uint32_t *out_il_offset)
{
    static const uint8_t stepping_information[16] = { 0xc5, 0x2a, 0xfd, 0x54, 0x25, 0xe9, 0x1a, 0x40,
                                                      0x9c, 0x2a, 0xf9, 0x4f, 0x17, 0x10, 0x72, 0xf8 };
    const struct ecma_metadata *md = &pdb->md;
    uint32_t row, count = ecma_method_debug_infos(md, method_row, &row);
    for (; count; count--, row++) {
        uint32_t kind = ecma_cell(md, ECMA_CUSTOM_DEBUG_INFORMATION, row, ECMA_DEBUG_INFORMATION_KIND);
        uint32_t value = ecma_cell(md, ECMA_CUSTOM_DEBUG_INFORMATION, row, ECMA_DEBUG_INFORMATION_VALUE);
        if (!span_equals(ecma_guid(md, kind), span_of(stepping_information, sizeof stepping_information)))
            continue;
        struct cursor c = cursor_over(ecma_blob(md, value));
        uint32_t yields = 0;
        cursor_u32le(&c); /* of the handler of all exceptions */
        for (uint32_t i = 0; i <= index && cursor_left(&c); i++) {
            yields = cursor_u32le(&c);
            cursor_u32le(&c); /* where it resumes, and in which method */
            cursor_ecma_uint(&c);
            if (i == index && cursor_ok(&c)) {
                *out_il_offset = yields;
                return true;
            }
        }
        return false;
    }
    return false;
}

bool portable_pdb_document(const struct portable_pdb *pdb, uint32_t document, struct buffer *out)
{
    const struct ecma_metadata *md = &pdb->md;
    struct cursor c = cursor_over(ecma_blob(md, ecma_cell(md, ECMA_DOCUMENT, document, DOCUMENT_NAME)));
    uint8_t separator = cursor_u8(&c);
    buffer_clear(out);
    for (bool first = true; cursor_left(&c) && out->size <= PATH_BYTES_MAX; first = false) {
        struct span part = ecma_blob(md, cursor_ecma_uint(&c));
        if (!first && separator)
            buffer_u8(out, separator);
        if (part.size > PATH_BYTES_MAX)
            return false;
        buffer_append(out, part.data, part.size);
    }
    return cursor_ok(&c) && !out->failed && out->size && out->size <= PATH_BYTES_MAX;
}
