#include "symbolize/aot_names.h"

#include <stdlib.h>

#include "base/mem.h"
#include "read/aot_image.h"
#include "read/eh_frame.h"

enum {
    LSDA_BYTES_MAX = 64 << 20,
    BODIES_MAX = 2 << 20, /* a web service of 10 MB has 30,000 */
    LSDA_KIND = 0x03, /* of its first byte; 0: of a method, else of a handler or a filter in the one before */
};

struct body {
    uint64_t start, size_bytes;
    bool is_handler;
};

struct bodies {
    struct body *rows;
    size_t count, capacity;
};

/* What the runtime keeps of its functions, from the first address that is asked for. */
struct lsda_bytes {
    const struct elf *e;
    const struct elf_section *section;
    struct buffer bytes;
};

static bool is_handler(struct lsda_bytes *lsda, uint64_t addr)
{
    if (!lsda->section) {
        lsda->section = elf_section_at(lsda->e, addr);
        if (!lsda->section || !elf_section_load(lsda->e, lsda->section, &lsda->bytes, NULL))
            buffer_clear(&lsda->bytes);
    }
    if (!lsda->section || addr < lsda->section->addr || addr - lsda->section->addr >= lsda->bytes.size)
        return false;
    return lsda->bytes.data[addr - lsda->section->addr] & LSDA_KIND;
}

static int compare(const void *a, const void *b)
{
    const struct body *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* All functions from `first` on. */
static void read_bodies(const struct elf *e, uint64_t first, struct bodies *out)
{
    struct buffer frame;
    uint64_t addr;
    struct lsda_bytes lsda = { .e = e };
    buffer_init(&lsda.bytes, LSDA_BYTES_MAX);
    if (eh_frame_load(e, &frame, &addr, NULL)) {
        struct eh_frame_iterator it = eh_frame_over(buffer_span(&frame), addr);
        for (struct eh_fde fde; out->count < BODIES_MAX && eh_frame_next(&it, &fde);) {
            uint64_t data;
            if (fde.start < first || fde.size_bytes == 0)
                continue;
            out->rows = mem_grow(out->rows, &out->capacity, out->count + 1, sizeof *out->rows);
            out->rows[out->count++] =
                (struct body){ fde.start, fde.size_bytes,
                               eh_fde_lsda(&it, &fde, &data) && is_handler(&lsda, data) };
        }
    }
    if (out->count > 1)
        qsort(out->rows, out->count, sizeof *out->rows, compare);
    buffer_done(&lsda.bytes);
    buffer_done(&frame);
}

/* Where its name is in `strings`; false when it has none. */
static bool spell(const struct aot_image *image, const struct aot_method *method, struct buffer *strings,
                  uint32_t *out)
{
    const struct aot_metadata *md = &image->metadata;
    size_t begin = strings->size;
    struct span name;
    bool ok =
        method->owner && begin <= UINT32_MAX && aot_metadata_append_assembly(md, method->owner, strings);
    buffer_u8(strings, '!');
    ok = ok && aot_metadata_append_type(md, method->owner, strings) &&
         aot_metadata_text(md, method->name, &name) && name.size;
    buffer_string(strings, "::");
    if (ok)
        buffer_append(strings, name.data, name.size);
    buffer_u8(strings, 0);
    *out = (uint32_t)begin;
    if (!ok || strings->failed)
        strings->size = begin;
    return ok && !strings->failed;
}

static void add_methods(const struct aot_image *image, const struct bodies *bodies, struct symbol_table *out,
                        struct buffer *strings)
{
    bool named = false;
    uint32_t name = 0;
    size_t at = 0;
    for (size_t i = 0; i < bodies->count; i++) {
        const struct body *body = &bodies->rows[i];
        if (!body->is_handler) {
            while (at < image->count && image->methods[at].addr < body->start)
                at++;
            named = at < image->count && image->methods[at].addr == body->start &&
                    spell(image, &image->methods[at], strings, &name);
        }
        if (named)
            symbol_table_add(out, body->start, body->size_bytes, name, 0);
    }
}

void aot_names_find(const struct elf *e, struct symbol_table *out, struct buffer *strings)
{
    struct aot_image image;
    struct bodies bodies = { 0 };
    if (!aot_image_read(e, &image, NULL))
        return;
    read_bodies(e, image.methods[0].addr, &bodies);
    add_methods(&image, &bodies, out, strings);
    free(bodies.rows);
    aot_image_done(&image);
}
