#include "analyse/event_tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

enum { TEXTS_BYTES_MAX = 1 << 30 };

void event_tally_init(struct event_tally *tally, const struct event_stacks *stacks)
{
    *tally = (struct event_tally){ .stacks = stacks };
    intern_init(&tally->texts, TEXTS_BYTES_MAX);
    tally->rows = mem_grow(NULL, &tally->row_capacity, 64, sizeof *tally->rows);
    tally->rows[0] = (struct tally_row){ 0 };
    tally->row_count = 1;
}

void event_tally_done(struct event_tally *tally)
{
    intern_done(&tally->texts);
    id_map_done(&tally->ids);
    free(tally->rows);
}

static bool row_same(const void *table, uint32_t id, const void *key)
{
    const struct tally_row *row = &((const struct event_tally *)table)->rows[id], *wanted = key;
    return row->text == wanted->text && row->detail == wanted->detail && row->node == wanted->node &&
           row->process == wanted->process;
}

static void sum_add(struct event_sum *sum, const struct event_weight *w, uint64_t time_ns)
{
    if (!sum->count || time_ns < sum->first_ns)
        sum->first_ns = time_ns;
    if (time_ns > sum->last_ns)
        sum->last_ns = time_ns;
    sum->count++;
    sum->weight += w->weight;
    sum->variance += w->variance;
    sum->objects += w->objects;
    sum->most = w->weight > sum->most ? w->weight : sum->most;
}

static void sum_join(struct event_sum *sum, const struct event_sum *more)
{
    if (!sum->count || more->first_ns < sum->first_ns)
        sum->first_ns = more->first_ns;
    if (more->last_ns > sum->last_ns)
        sum->last_ns = more->last_ns;
    sum->count += more->count;
    sum->weight += more->weight;
    sum->variance += more->variance;
    sum->objects += more->objects;
    sum->most = more->most > sum->most ? more->most : sum->most;
}

bool event_tally_add(struct event_tally *tally, struct span text, struct span detail, uint32_t node,
                     uint32_t process, uint64_t time_ns, const struct event_weight *weight)
{
    struct tally_row key = { .text = intern_add(&tally->texts, text),
                             .detail = intern_add(&tally->texts, detail),
                             .node = node,
                             .process = process };
    bool room = (key.text || !text.size) && (key.detail || !detail.size);
    uint64_t hash = hash_pair(hash_pair(key.text, key.detail), hash_pair(node, process));
    uint32_t id = id_map_find(&tally->ids, hash, row_same, tally, &key);
    if (!id) {
        tally->rows = mem_grow(tally->rows, &tally->row_capacity, tally->row_count + 1, sizeof *tally->rows);
        id = (uint32_t)tally->row_count++;
        tally->rows[id] = key;
        id_map_add(&tally->ids, hash, id);
    }
    sum_add(&tally->rows[id].sum, weight, time_ns);
    sum_add(&tally->total, weight, time_ns);
    return room;
}

/* What rows of a group have in common. */
static uint32_t key_of(const struct event_tally *tally, const struct tally_row *row, enum tally_by by)
{
    switch (by) {
    case TALLY_BY_STACK:
        return row->node;
    case TALLY_BY_FUNCTION:
        return tally->stacks->nodes[row->node].frame;
    case TALLY_BY_PROCESS:
        return row->process;
    case TALLY_BY_TEXT:
    case TALLY_BYS:
        break;
    }
    return row->text;
}

static int weight_compare(const struct event_sum *a, const struct event_sum *b)
{
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return 0;
}

/* A row on its way into a group. */
struct sorted_row {
    const struct event_tally *tally;
    const struct event_sum *group;
    uint32_t key, row;
};

static int text_compare(const struct event_tally *tally, const struct tally_row *a, const struct tally_row *b)
{
    int order = strcmp(intern_text(&tally->texts, a->text), intern_text(&tally->texts, b->text));
    return order ? order
                 : strcmp(intern_text(&tally->texts, a->detail), intern_text(&tally->texts, b->detail));
}

static int sorted_compare(const void *a, const void *b)
{
    const struct sorted_row *x = a, *y = b;
    const struct tally_row *p = &x->tally->rows[x->row], *q = &y->tally->rows[y->row];
    int order = x->key == y->key ? 0 : weight_compare(x->group, y->group);
    if (order)
        return order;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    order = weight_compare(&p->sum, &q->sum);
    if (!order)
        order = text_compare(x->tally, p, q);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static size_t keys_of(const struct event_tally *tally, enum tally_by by)
{
    uint32_t most = 0;
    for (size_t i = 1; i < tally->row_count; i++) {
        uint32_t key = key_of(tally, &tally->rows[i], by);
        most = key > most ? key : most;
    }
    return (size_t)most + 1;
}

/* Those that weigh the same by name, so that they come in the same order from every capture. */
static int group_compare(const void *a, const void *b, void *user)
{
    const struct event_groups *groups = user;
    const struct tally_group *x = a, *y = b;
    int order = weight_compare(&x->sum, &y->sum);
    if (!order)
        order = text_compare(groups->tally, event_group_row(groups, x, 0), event_group_row(groups, y, 0));
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

void event_groups_init(struct event_groups *groups, const struct event_tally *tally, enum tally_by by)
{
    size_t rows = tally->row_count - 1;
    *groups = (struct event_groups){ .tally = tally, .by = by };
    AUTO_FREE struct event_sum *sums = mem_alloc(keys_of(tally, by), sizeof *sums);
    AUTO_FREE struct sorted_row *sorted = mem_alloc(rows + 1, sizeof *sorted);
    for (size_t i = 0; i < rows; i++) {
        uint32_t key = key_of(tally, &tally->rows[i + 1], by);
        sum_join(&sums[key], &tally->rows[i + 1].sum);
        sorted[i] = (struct sorted_row){ tally, &sums[key], key, (uint32_t)i + 1 };
    }
    if (rows)
        qsort(sorted, rows, sizeof *sorted, sorted_compare);
    groups->rows = mem_alloc(rows + 1, sizeof *groups->rows);
    groups->order = mem_alloc(rows + 1, sizeof *groups->order);
    for (size_t i = 0; i < rows; i++) {
        if (!i || sorted[i].key != sorted[i - 1].key)
            groups->rows[groups->count++] = (struct tally_group){ .sum = *sorted[i].group, .first = i };
        groups->rows[groups->count - 1].count++;
        groups->order[i] = sorted[i].row;
    }
    if (groups->count)
        qsort_r(groups->rows, groups->count, sizeof *groups->rows, group_compare, groups);
}

void event_groups_done(struct event_groups *groups)
{
    free(groups->rows);
    free(groups->order);
}
