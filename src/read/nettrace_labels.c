#include "read/nettrace_labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/nettrace.h"

enum {
    LABEL_ACTIVITY = 1,
    LABEL_RELATED_ACTIVITY,
    LABEL_TRACE_ID,
    LABEL_SPAN_ID,
    LABEL_TEXT,
    LABEL_NUMBER,
    LABEL_OPCODE,
    LABEL_KEYWORDS,
    LABEL_LEVEL,
    LABEL_VERSION,
    LABEL_IS_LAST = 0x80,
};

void nettrace_labels_done(struct nettrace_labels *l)
{
    free(l->by_id);
}

void nettrace_labels_clear(struct nettrace_labels *l)
{
    l->count = 0;
}

const struct nettrace_label_list *nettrace_labels_find(const struct nettrace_labels *l, uint32_t id)
{
    return id && id < l->count ? &l->by_id[id] : NULL;
}

static bool read_id(struct cursor *c, uint8_t id[16])
{
    struct span bytes = cursor_bytes(c, 16);
    if (!bytes.size)
        return false;
    memcpy(id, bytes.data, 16);
    return true;
}

/* One label; false when it is the list's last, or cannot be read. */
static bool read_label(struct cursor *c, struct nettrace_label_list *out)
{
    uint8_t kind = cursor_u8(c);
    switch (kind & ~LABEL_IS_LAST) {
    case LABEL_ACTIVITY:
        out->has_activity = read_id(c, out->activity);
        break;
    case LABEL_RELATED_ACTIVITY:
        out->has_related = read_id(c, out->related_activity);
        break;
    case LABEL_TRACE_ID:
        cursor_skip(c, 16);
        break;
    case LABEL_SPAN_ID:
    case LABEL_KEYWORDS:
        cursor_skip(c, 8);
        break;
    case LABEL_TEXT:
        cursor_skip(c, cursor_varuint32(c));
        cursor_skip(c, cursor_varuint32(c));
        break;
    case LABEL_NUMBER:
        cursor_skip(c, cursor_varuint32(c));
        cursor_varuint64(c);
        break;
    case LABEL_OPCODE:
    case LABEL_LEVEL:
    case LABEL_VERSION:
        cursor_skip(c, 1);
        break;
    default: /* of unknown size: nothing behind it can be read */
        c->failed = true;
        break;
    }
    return cursor_ok(c) && !(kind & LABEL_IS_LAST);
}

static bool keep(struct nettrace_labels *l, uint32_t id, const struct nettrace_label_list *list)
{
    if (id == 0 || id >= NETTRACE_LABELS_MAX)
        return false;
    l->by_id = mem_grow(l->by_id, &l->capacity, (size_t)id + 1, sizeof *l->by_id);
    for (; l->count <= id; l->count++)
        l->by_id[l->count] = (struct nettrace_label_list){ 0 };
    l->by_id[id] = *list;
    return true;
}

bool nettrace_labels_read(struct nettrace_labels *l, struct span content, uint64_t *refused,
                          struct error *err)
{
    struct cursor c = cursor_over(content);
    uint32_t first_id = cursor_u32le(&c), count = cursor_u32le(&c);
    if (count > UINT32_MAX - first_id)
        return error_set(err, ERROR_INPUT, "the numbers of a LabelList run past 32 bits");
    for (uint32_t i = 0; i < count && cursor_ok(&c); i++) {
        struct nettrace_label_list list = { 0 };
        while (read_label(&c, &list))
            ;
        if (cursor_ok(&c) && !keep(l, first_id + i, &list))
            ++*refused;
    }
    return cursor_finish(&c, err, "a LabelList");
}
