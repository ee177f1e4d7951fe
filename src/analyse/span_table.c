#include "analyse/span_table.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/gc_history.h"
#include "base/mem.h"
#include "base/own.h"

enum { TEXTS_BYTES_MAX = 1 << 30, KEY_BYTES = 16, OVER_MIN = 1024, BESIDE_MAX = 256 };

void span_table_init(struct span_table *table)
{
    *table = (struct span_table){ 0 };
    intern_init(&table->texts, TEXTS_BYTES_MAX);
    table->open = mem_grow(NULL, &table->open_capacity, 64, sizeof *table->open);
    table->open[0] = (struct open_span){ 0 };
    table->open_count = 1;
}

void span_table_done(struct span_table *table)
{
    intern_done(&table->texts);
    id_map_done(&table->open_ids);
    free(table->rows);
    free(table->open);
}

struct span_key {
    const uint8_t *key;
    uint32_t scope, nth;
};

static uint64_t key_hash(const struct span_key *key)
{
    return hash_pair(hash_bytes(key->key, KEY_BYTES), (uint64_t)key->nth << 32 | key->scope);
}

static bool open_same(const void *table, uint32_t id, const void *key)
{
    const struct open_span *row = &((const struct span_table *)table)->open[id];
    const struct span_key *wanted = key;
    return !row->is_over && row->scope == wanted->scope && row->nth == wanted->nth &&
           memcmp(row->key, wanted->key, KEY_BYTES) == 0;
}

static uint32_t find_open(const struct span_table *table, const struct span_key *key)
{
    return id_map_find(&table->open_ids, key_hash(key), open_same, table, key);
}

/* Which of two with one key ends at a time. */
static bool ends_before(const struct span_row *row, const struct span_row *other, uint64_t time_ns)
{
    bool due = row->due_ns && row->due_ns <= time_ns, other_due = other->due_ns && other->due_ns <= time_ns;
    if (due != other_due)
        return due;
    if (due && row->due_ns != other->due_ns)
        return row->due_ns > other->due_ns;
    if (!row->due_ns != !other->due_ns)
        return !row->due_ns; /* the other one's time is still to come */
    return row->start_ns < other->start_ns;
}

static bool is_due_before(const struct span_row *row, const struct span_row *other, uint64_t time_ns)
{
    bool due = row->due_ns >= time_ns, other_due = other->due_ns >= time_ns;
    return due != other_due ? due : row->due_ns < other->due_ns;
}

/* That of a key which comes before all others, or 0. */
static uint32_t find_first(const struct span_table *table, const uint8_t *key, uint32_t scope,
                           uint64_t time_ns,
                           bool (*before)(const struct span_row *, const struct span_row *, uint64_t))
{
    struct span_key one = { key, scope, 0 };
    uint32_t found = 0;
    for (uint32_t id; (id = find_open(table, &one)) != 0; one.nth++)
        if (!found || before(&table->open[id].row, &table->open[found].row, time_ns))
            found = id;
    return found;
}

/* Those that are over leave room when they are most of the table. */
static void forget_over(struct span_table *table)
{
    if (table->over_count < OVER_MIN || table->over_count < table->open_count / 2)
        return;
    size_t kept = 1;
    id_map_clear(&table->open_ids);
    for (size_t i = 1; i < table->open_count; i++) {
        if (table->open[i].is_over)
            continue;
        table->open[kept] = table->open[i];
        const struct open_span *open = &table->open[kept];
        id_map_add(&table->open_ids, key_hash(&(struct span_key){ open->key, open->scope, open->nth }),
                   (uint32_t)kept);
        kept++;
    }
    table->open_count = kept;
    table->over_count = 0;
}

static void begin(struct span_table *table, const struct span_key *key, const struct span_row *row)
{
    uint32_t id = find_open(table, key);
    if (id) { /* its end was lost */
        table->unfinished++;
        table->open[id].row = *row;
        return;
    }
    forget_over(table);
    table->open = mem_grow(table->open, &table->open_capacity, table->open_count + 1, sizeof *table->open);
    id = (uint32_t)table->open_count++;
    table->open[id] = (struct open_span){ .scope = key->scope, .nth = key->nth, .row = *row };
    memcpy(table->open[id].key, key->key, KEY_BYTES);
    id_map_add(&table->open_ids, key_hash(key), id);
}

void span_table_begin(struct span_table *table, const uint8_t key[16], uint32_t scope,
                      const struct span_row *row)
{
    begin(table, &(struct span_key){ key, scope, 0 }, row);
}

void span_table_begin_beside(struct span_table *table, const uint8_t key[16], uint32_t scope,
                             const struct span_row *row)
{
    struct span_key free = { key, scope, 0 };
    while (free.nth < BESIDE_MAX - 1 && find_open(table, &free))
        free.nth++;
    begin(table, &free, row);
}

static struct span_row *row_of(struct span_table *table, uint32_t id)
{
    return id ? &table->open[id].row : NULL;
}

struct span_row *span_table_find(struct span_table *table, const uint8_t key[16], uint32_t scope)
{
    return row_of(table, find_open(table, &(struct span_key){ key, scope, 0 }));
}

struct span_row *span_table_find_next(struct span_table *table, const uint8_t key[16], uint32_t scope,
                                      uint64_t time_ns)
{
    return row_of(table, find_first(table, key, scope, time_ns, is_due_before));
}

struct span_row *span_table_find_due(struct span_table *table, const uint8_t key[16], uint32_t scope,
                                     uint64_t time_ns)
{
    return row_of(table, find_first(table, key, scope, time_ns, ends_before));
}

static uint32_t find_last(const struct span_table *table, const struct open_span *open)
{
    struct span_key one = { open->key, open->scope, open->nth };
    uint32_t last = 0;
    for (uint32_t id; (id = find_open(table, &one)) != 0; one.nth++)
        last = id;
    return last;
}

bool span_table_end(struct span_table *table, const uint8_t key[16], uint32_t scope, uint64_t stop_ns)
{
    uint32_t id = find_first(table, key, scope, stop_ns, ends_before);
    if (!id) {
        table->unbegun++;
        return false;
    }
    struct open_span *open = &table->open[id];
    table->rows = mem_grow(table->rows, &table->capacity, table->count + 1, sizeof *table->rows);
    table->rows[table->count] = open->row;
    table->rows[table->count].stop_ns = stop_ns > open->row.start_ns ? stop_ns : open->row.start_ns;
    table->count++;
    id = find_last(table, open);
    open->row = table->open[id].row; /* leaves no gap */
    table->open[id].is_over = true;
    table->over_count++;
    return true;
}

void span_table_seal(struct span_table *table, const struct trace *t)
{
    struct gc_history gc;
    table->unfinished += table->open_count - 1 - table->over_count;
    gc_history_init(&gc, t);
    for (size_t i = 0; i < table->count; i++) {
        struct span_row *row = &table->rows[i];
        if (row->process < gc.process_count)
            row->gc_ns = gc_process_paused_ns(&gc.processes[row->process], row->start_ns, row->stop_ns);
    }
    gc_history_done(&gc);
}

/* A span on its way into a group. */
struct sorted_span {
    const struct span_table *table;
    uint32_t row;
};

static uint32_t group_name(const struct span_row *row)
{
    return row->group ? row->group : row->name;
}

static int text_compare(const struct span_table *table, uint32_t a, uint32_t b)
{
    return a == b ? 0 : strcmp(intern_text(&table->texts, a), intern_text(&table->texts, b));
}

static int sorted_compare(const void *a, const void *b)
{
    const struct sorted_span *x = a, *y = b;
    const struct span_row *p = &x->table->rows[x->row], *q = &y->table->rows[y->row];
    int order = text_compare(x->table, p->kind, q->kind);
    if (!order)
        order = text_compare(x->table, group_name(p), group_name(q));
    if (order)
        return order;
    if (span_ns(p) != span_ns(q))
        return span_ns(p) < span_ns(q) ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int group_compare(const void *a, const void *b)
{
    const struct span_group *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

void span_groups_init(struct span_groups *groups, const struct span_table *table)
{
    *groups = (struct span_groups){ .table = table };
    AUTO_FREE struct sorted_span *sorted = mem_alloc(table->count + 1, sizeof *sorted);
    groups->rows = mem_alloc(table->count + 1, sizeof *groups->rows);
    groups->order = mem_alloc(table->count + 1, sizeof *groups->order);
    for (size_t i = 0; i < table->count; i++)
        sorted[i] = (struct sorted_span){ table, (uint32_t)i };
    if (table->count)
        qsort(sorted, table->count, sizeof *sorted, sorted_compare);
    for (size_t i = 0; i < table->count; i++) {
        const struct span_row *row = &table->rows[sorted[i].row];
        bool same = groups->count && groups->rows[groups->count - 1].kind == row->kind &&
                    groups->rows[groups->count - 1].name == group_name(row);
        if (!same)
            groups->rows[groups->count++] =
                (struct span_group){ .kind = row->kind, .name = group_name(row), .first = i };
        struct span_group *last = &groups->rows[groups->count - 1];
        last->count++;
        last->failed += row->failed;
        last->total_ns += span_ns(row);
        last->gc_ns += row->gc_ns;
        groups->order[i] = sorted[i].row;
    }
    if (groups->count)
        qsort(groups->rows, groups->count, sizeof *groups->rows, group_compare);
}

void span_groups_done(struct span_groups *groups)
{
    free(groups->rows);
    free(groups->order);
}

const struct span_row *span_group_at(const struct span_groups *groups, const struct span_group *group,
                                     double share)
{
    size_t rank = (size_t)(share * (double)group->count);
    if ((double)rank < share * (double)group->count)
        rank++; /* the nearest rank that covers the share */
    rank = rank ? rank - 1 : 0;
    if (rank >= group->count)
        rank = group->count - 1;
    return &groups->table->rows[groups->order[group->first + rank]];
}
