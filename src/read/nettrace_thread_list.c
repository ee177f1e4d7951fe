#include "read/nettrace_thread_list.h"

#include <stdlib.h>

#include "base/mem.h"
#include "read/nettrace.h"

enum { ITEM_NAME = 1, ITEM_PROCESS_ID, ITEM_THREAD_ID, ITEM_KEY_VALUE };

void nettrace_thread_list_done(struct nettrace_thread_list *t)
{
    id_map_done(&t->ids);
    free(t->rows);
}

void nettrace_thread_list_clear(struct nettrace_thread_list *t)
{
    id_map_clear(&t->ids);
    t->count = 0;
    t->latest = 0;
}

static bool same_index(const void *table, uint32_t row, const void *key)
{
    const struct nettrace_thread_list *t = table;
    return t->rows[row].index == *(const uint64_t *)key;
}

const struct nettrace_listed_thread *nettrace_thread_list_find(struct nettrace_thread_list *t, uint64_t index)
{
    if (!t->latest || t->rows[t->latest].index != index)
        t->latest = id_map_find(&t->ids, hash_pair(index, 0), same_index, t, &index);
    return t->latest ? &t->rows[t->latest] : NULL;
}

/* An index that is listed again is another thread. */
static bool keep(struct nettrace_thread_list *t, const struct nettrace_listed_thread *thread)
{
    uint32_t id = id_map_find(&t->ids, hash_pair(thread->index, 0), same_index, t, &thread->index);
    if (!id) {
        if (t->count == 0)
            t->count = 1;
        if (t->count > NETTRACE_THREADS_MAX)
            return false;
        t->rows = mem_grow(t->rows, &t->capacity, t->count + 1, sizeof *t->rows);
        id = (uint32_t)t->count++;
        id_map_add(&t->ids, hash_pair(thread->index, 0), id);
    }
    t->rows[id] = *thread;
    t->rows[id].name = (struct span){ 0 };
    return true;
}

static struct span read_text(struct cursor *c)
{
    return cursor_bytes(c, cursor_varuint32(c));
}

static struct nettrace_listed_thread read_row(struct cursor *row)
{
    struct nettrace_listed_thread thread = { .index = cursor_varuint64(row) };
    while (cursor_left(row) > 0) {
        switch (cursor_u8(row)) {
        case ITEM_NAME:
            thread.name = read_text(row);
            break;
        case ITEM_PROCESS_ID:
            thread.process_id = cursor_varuint64(row);
            break;
        case ITEM_THREAD_ID:
            thread.thread_id = cursor_varuint64(row);
            break;
        case ITEM_KEY_VALUE:
            read_text(row);
            read_text(row);
            break;
        default: /* a later version's, of unknown size: what was read before stays */
            return thread;
        }
    }
    return thread;
}

bool nettrace_thread_list_read(struct nettrace_thread_list *t, struct span content, uint64_t *refused,
                               nettrace_thread_fn *emit, void *user, struct error *err)
{
    struct cursor c = cursor_over(content);
    while (cursor_left(&c) > 0) {
        struct cursor row = cursor_over(cursor_bytes(&c, cursor_u16le(&c)));
        struct nettrace_listed_thread thread = read_row(&row);
        c.failed |= row.failed;
        if (!cursor_ok(&c))
            break;
        if (!keep(t, &thread))
            ++*refused;
        else if (emit && !emit(user, &thread, err))
            return false;
    }
    return cursor_finish(&c, err, "a Thread block");
}
