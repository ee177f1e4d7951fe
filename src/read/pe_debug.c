#include "read/pe_debug.h"

#include <string.h>

#include "read/unpack.h"

enum {
    ENTRY_BYTES = 28,
    ENTRIES_MAX = 64,
    TYPE_CODEVIEW = 2,
    TYPE_EMBEDDED = 17,
    PORTABLE_MINOR = 0x504d,
    SIGNATURE_RSDS = 0x53445352,
    SIGNATURE_MPDB = 0x4244504d,
    GUID_BYTES = 16,
    CODEVIEW_HEAD_BYTES = 4 + GUID_BYTES + 4,
    EMBEDDED_HEAD_BYTES = 8,
};

struct debug_entry {
    uint32_t stamp, type, size, file_off;
    uint16_t minor;
};

static struct debug_entry read_entry(struct cursor *c)
{
    struct debug_entry entry = { 0 };
    cursor_skip(c, 4);
    entry.stamp = cursor_u32le(c);
    cursor_skip(c, 2);
    entry.minor = cursor_u16le(c);
    entry.type = cursor_u32le(c);
    entry.size = cursor_u32le(c);
    cursor_skip(c, 4); /* RVA: the PDB need not be mapped */
    entry.file_off = cursor_u32le(c);
    return entry;
}

static bool read_codeview(const struct source *file, const struct debug_entry *entry, struct pe_debug *out)
{
    uint8_t bytes[CODEVIEW_HEAD_BYTES + PE_DEBUG_PATH_MAX];
    size_t size = entry->size < sizeof bytes ? entry->size : sizeof bytes;
    if (entry->minor != PORTABLE_MINOR || size < CODEVIEW_HEAD_BYTES ||
        !source_read(file, entry->file_off, bytes, size, NULL) || load_u32le(bytes) != SIGNATURE_RSDS)
        return false;
    memcpy(out->pdb_id, bytes + 4, GUID_BYTES);
    for (unsigned i = 0; i < 4; i++)
        out->pdb_id[GUID_BYTES + i] = (uint8_t)(entry->stamp >> (8 * i));
    struct cursor c = cursor_over(span_of(bytes + CODEVIEW_HEAD_BYTES, size - CODEVIEW_HEAD_BYTES));
    struct span path = cursor_zstring(&c);
    if (path.size)
        memcpy(out->path, path.data, path.size);
    out->path[path.size] = 0;
    return true;
}

static void read_embedded(const struct source *file, const struct debug_entry *entry, struct pe_debug *out)
{
    uint8_t head[EMBEDDED_HEAD_BYTES];
    if (entry->size <= sizeof head || !source_read(file, entry->file_off, head, sizeof head, NULL) ||
        load_u32le(head) != SIGNATURE_MPDB)
        return;
    out->unpacked_bytes = load_u32le(head + 4);
    out->embedded_off = (uint64_t)entry->file_off + EMBEDDED_HEAD_BYTES;
    out->embedded_bytes = entry->size - EMBEDDED_HEAD_BYTES;
}

bool pe_debug_read(const struct source *file, const struct pe *pe, struct pe_debug *out, struct error *err)
{
    struct pe_range range = pe->directories[PE_DIRECTORY_DEBUG];
    struct buffer bytes;
    bool named = false;
    *out = (struct pe_debug){ .path = "" };
    if (range.size > ENTRIES_MAX * ENTRY_BYTES)
        return error_set(err, ERROR_LIMIT, "a debug directory of %u bytes", range.size);
    if (range.size == 0)
        return error_set(err, ERROR_UNSUPPORTED, "the assembly names no PDB");
    buffer_init(&bytes, ENTRIES_MAX * ENTRY_BYTES);
    bool ok = pe_load(file, pe, range, &bytes, err);
    struct cursor c = cursor_over(buffer_span(&bytes));
    while (ok && cursor_left(&c) >= ENTRY_BYTES) {
        struct debug_entry entry = read_entry(&c);
        if (entry.type == TYPE_CODEVIEW && !named)
            named = read_codeview(file, &entry, out);
        else if (entry.type == TYPE_EMBEDDED)
            read_embedded(file, &entry, out);
    }
    buffer_done(&bytes);
    return ok && (named || error_set(err, ERROR_UNSUPPORTED, "the assembly names no portable PDB"));
}

bool pe_debug_unpack(const struct source *file, const struct pe_debug *debug, struct buffer *out,
                     struct error *err)
{
    struct source packed = source_part(file, debug->embedded_off, debug->embedded_bytes);
    if (debug->embedded_bytes == 0)
        return error_set(err, ERROR_UNSUPPORTED, "the assembly holds no PDB");
    return unpack_deflate(&packed, out, err) &&
           (out->size == debug->unpacked_bytes ||
            error_set(err, ERROR_INPUT, "an embedded PDB of %zu bytes, not %u", out->size,
                      debug->unpacked_bytes));
}
