#include "read/nettrace_threads.h"

#include <stdlib.h>

#include "base/mem.h"
#include "read/nettrace.h"

/* Below this many, threads that ended are not worth a clean-up. */
enum { CROWD = 4096 };

void nettrace_threads_done(struct nettrace_threads *t)
{
    id_map_done(&t->ids);
    free(t->rows);
}

static bool same_thread(const void *table, uint32_t row, const void *key)
{
    const struct nettrace_threads *t = table;
    return t->rows[row].id == *(const uint64_t *)key;
}

static struct nettrace_thread *add(struct nettrace_threads *t, uint64_t thread_id)
{
    if (t->count == 0)
        t->count = 1;
    if (t->count > NETTRACE_THREADS_MAX)
        return NULL;
    t->rows = mem_grow(t->rows, &t->capacity, t->count + 1, sizeof *t->rows);
    struct nettrace_thread *row = &t->rows[t->count];
    *row = (struct nettrace_thread){ .id = thread_id };
    id_map_add(&t->ids, hash_pair(thread_id, 0), (uint32_t)t->count++);
    return row;
}

/* Moves a thread to `sequence`. An event accounts for its own number, a sequence point for none. */
static struct nettrace_progress advance(struct nettrace_threads *t, uint64_t thread_id, uint32_t sequence,
                                        bool is_event, struct nettrace_thread **out)
{
    struct nettrace_progress p = { 0 };
    uint32_t found = id_map_find(&t->ids, hash_pair(thread_id, 0), same_thread, t, &thread_id);
    struct nettrace_thread *row = found ? &t->rows[found] : add(t, thread_id);
    *out = row;
    if (!row) {
        t->forgot = true;
        p.refused = true;
        return p;
    }
    uint32_t step = sequence - row->last;
    if (!found && t->forgot)
        step = is_event;
    if (is_event && step == 0) {
        p.back = true;
    } else if (step > INT32_MAX) {
        p.back = true; /* what a new owner of the id lost before is not told */
    } else {
        p.lost = step - is_event;
    }
    if (is_event || !p.back)
        row->last = sequence;
    return p;
}

struct nettrace_progress nettrace_threads_event(struct nettrace_threads *t, uint64_t thread_id,
                                                uint32_t sequence, uint64_t ticks)
{
    struct nettrace_thread *row;
    struct nettrace_progress p = advance(t, thread_id, sequence, true, &row);
    if (row) {
        p.older = !p.back && ticks < row->ticks;
        row->ticks = ticks;
        t->latest = (size_t)(row - t->rows);
    }
    return p;
}

struct nettrace_progress nettrace_threads_reached(struct nettrace_threads *t, uint64_t thread_id,
                                                  uint32_t sequence)
{
    struct nettrace_thread *row;
    struct nettrace_progress p = advance(t, thread_id, sequence, false, &row);
    if (row)
        row->listed = true;
    return p;
}

void nettrace_threads_end(struct nettrace_threads *t, uint64_t thread_id)
{
    uint32_t found = id_map_find(&t->ids, hash_pair(thread_id, 0), same_thread, t, &thread_id);
    if (found)
        t->rows[found] = (struct nettrace_thread){ .id = thread_id };
}

void nettrace_threads_clear(struct nettrace_threads *t)
{
    id_map_clear(&t->ids);
    t->count = t->latest = 0;
}

void nettrace_threads_end_point(struct nettrace_threads *t)
{
    bool crowd = t->count > CROWD;
    t->latest = 0;
    if (crowd)
        id_map_clear(&t->ids);
    size_t kept = 1;
    for (size_t i = 1; i < t->count; i++) {
        struct nettrace_thread row = t->rows[i];
        if (crowd && !row.listed)
            continue;
        row.listed = false;
        t->rows[kept] = row;
        if (crowd)
            id_map_add(&t->ids, hash_pair(row.id, 0), (uint32_t)kept);
        kept++;
    }
    if (t->count)
        t->count = kept;
}
