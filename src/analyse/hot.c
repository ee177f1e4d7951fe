#include "analyse/hot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/mem.h"

/* Which row each frame belongs to, while a table is made. */
struct hot_build {
    const struct profile *p;
    struct hot_table *table;
    size_t capacity;
    struct id_map index;
    uint32_t *row_of_frame; /* row + 1, 0: none */
    bool lines;             /* rows are lines */
};

struct hot_key {
    struct span name;
    const char *module;
    const struct hot_row *like; /* NULL when rows are not lines */
};

static bool hot_same_line(const struct hot_row *a, const struct hot_row *b)
{
    return a->line == b->line && a->line_of_method == b->line_of_method && a->inlined == b->inlined &&
           (a->file == b->file || (a->file && b->file && strcmp(a->file, b->file) == 0));
}

static bool hot_same(const void *table, uint32_t id, const void *key)
{
    const struct hot_row *row = &((const struct hot_table *)table)->rows[id - 1];
    const struct hot_key *wanted = key;
    return strcmp(row->module, wanted->module) == 0 &&
           span_equals(span_of(row->name, strlen(row->name)), wanted->name) &&
           (!wanted->like || hot_same_line(row, wanted->like));
}

static uint64_t hot_hash(struct span name, const char *module, uint32_t line)
{
    uint64_t hash = hash_pair(hash_bytes(name.data, name.size), hash_bytes(module, strlen(module)));
    return line ? hash_pair(hash, line) : hash;
}

/* The row (plus 1) of a name in a module, added when new. */
static uint32_t hot_row_of(struct hot_build *b, struct span name, const char *module,
                           const struct hot_row *like)
{
    struct hot_key key = { name, module, b->lines ? like : NULL };
    uint64_t hash = hot_hash(name, module, b->lines ? like->line : 0);
    uint32_t id = id_map_find(&b->index, hash, hot_same, b->table, &key);
    if (id)
        return id;
    struct hot_table *t = b->table;
    t->rows = mem_grow(t->rows, &b->capacity, t->count + 1, sizeof *t->rows);
    t->rows[t->count] = *like;
    t->rows[t->count].name = arena_string(&t->arena, name);
    t->rows[t->count].module = module;
    id = (uint32_t)++t->count;
    id_map_add(&b->index, hash, id);
    return id;
}

/* "Ns.Type" of "Ns.Type.Method", of which nothing better is known: up to the last dot that is in no brackets.
 */
static struct span type_in_name(const char *name)
{
    size_t dot = 0;
    int depth = 0;
    for (size_t i = 0; name[i]; i++) {
        if (name[i] == '<' || name[i] == '[' || name[i] == '(')
            depth++;
        else if (name[i] == '>' || name[i] == ']' || name[i] == ')')
            depth--;
        else if (name[i] == ' ' && depth == 0)
            break;
        else if (name[i] == '.' && depth == 0 &&
                 (i == 0 || name[i - 1] != '.')) /* of "Type..ctor" the first */
            dot = i;
    }
    return span_of(name, dot ? dot : strlen(name));
}

static struct span type_of_frame(const struct profile_frame *f)
{
    return f->type_bytes ? span_of(f->name, f->type_bytes) : type_in_name(f->name);
}

static const char *module_label(const struct profile_frame *f)
{
    if (f->module[0])
        return f->module;
    return f->kind == CODE_KERNEL                                  ? "[kernel]"
           : code_kind_is_managed(f->kind) || f->kind == CODE_STUB ? "[jit]"
                                                                   : "[unknown]";
}

struct hot_row hot_row_like(const struct profile_frame *f)
{
    return (struct hot_row){ .name = f->name,
                             .module = f->module,
                             .file = f->file,
                             .line = f->line,
                             .line_of_method = f->line_of_method,
                             .inlined = f->inlined,
                             .kind = f->kind,
                             .tier = f->tier };
}

/* A module's or type's row. Its code can be of several kinds: then the row is of none. */
static uint32_t hot_row_of_group(struct hot_build *b, struct span name, const char *module, uint8_t kind)
{
    const struct hot_row like = { .kind = kind };
    uint32_t id = hot_row_of(b, name, module, &like);
    struct hot_row *row = &b->table->rows[id - 1];
    if (row->kind != kind)
        row->kind = CODE_UNKNOWN;
    return id;
}

static uint32_t hot_row_of_frame(struct hot_build *b, uint32_t frame, enum hot_by by)
{
    const struct profile_frame *f = &b->p->frames[frame];
    const char *module = module_label(f);
    bool of_type = by == HOT_BY_TYPE && code_kind_is_managed(f->kind) && !f->unnamed;
    if (by == HOT_BY_MODULE || by == HOT_BY_TYPE)
        return hot_row_of_group(b, of_type ? type_of_frame(f) : span_of(module, strlen(module)), module,
                                f->kind);
    const struct hot_row like = hot_row_like(f);
    return hot_row_of(b, span_of(f->name, strlen(f->name)), f->module, &like);
}

/* Nodes as first child and next sibling, so that a walk can keep track of what is on its path. */
struct node_links {
    uint32_t *child, *sibling;
};

static struct node_links node_links_of(const struct profile *p)
{
    struct node_links links = { mem_alloc(p->node_count, sizeof(uint32_t)),
                                mem_alloc(p->node_count, sizeof(uint32_t)) };
    for (uint32_t node = p->node_count; node-- > 1;) {
        links.sibling[node] = links.child[p->nodes[node].parent];
        links.child[p->nodes[node].parent] = node;
    }
    return links;
}

/* Adds up self and total: a row that is on the path already does not count a second time. */
static void hot_add_nodes(struct hot_build *b)
{
    const struct profile *p = b->p;
    struct hot_row *rows = b->table->rows;
    struct node_links links = node_links_of(p);
    uint32_t *on_path = mem_alloc(b->table->count + 1, sizeof *on_path);
    uint32_t node = 0;
    for (;;) {
        if (links.child[node]) {
            node = links.child[node];
        } else {
            while (node && !links.sibling[node]) {
                on_path[b->row_of_frame[p->nodes[node].frame]]--;
                node = p->nodes[node].parent;
            }
            if (!node)
                break;
            on_path[b->row_of_frame[p->nodes[node].frame]]--;
            node = links.sibling[node];
        }
        uint32_t row = b->row_of_frame[p->nodes[node].frame];
        if (on_path[row]++ == 0)
            rows[row - 1].total += p->total[node];
        rows[row - 1].self += p->self[node];
    }
    free(links.child);
    free(links.sibling);
    free(on_path);
}

static int hot_compare_names(const struct hot_row *x, const struct hot_row *y)
{
    int order = strcmp(x->name, y->name);
    order = order ? order : strcmp(x->module, y->module);
    order = order ? order : (x->line > y->line) - (x->line < y->line);
    return order ? order : x->inlined - y->inlined;
}

static int hot_compare_self(const void *a, const void *b)
{
    const struct hot_row *x = a, *y = b;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return hot_compare_names(x, y);
}

static int hot_compare_total(const void *a, const void *b)
{
    const struct hot_row *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    return hot_compare_names(x, y);
}

void hot_table_sort(struct hot_table *table)
{
    if (table->count) /* not where filters left nothing */
        qsort(table->rows, table->count, sizeof *table->rows, hot_compare_total);
}

static size_t when_bucket(const struct profile *p, size_t sample)
{
    uint64_t bucket = p->duration_ns ? p->sample_time_ns[sample] * HOT_WHEN_BUCKETS / p->duration_ns : 0;
    return bucket < HOT_WHEN_BUCKETS ? (size_t)bucket : HOT_WHEN_BUCKETS - 1;
}

/* The last bucket that an entry belongs to: one of wall time to all of those that it stands for. */
static size_t when_last(const struct profile *p, size_t sample, size_t first)
{
    uint64_t to_ns = p->sample_time_ns[sample] + p->sample_weight[sample];
    if (!p->is_wall || !p->duration_ns || !p->sample_weight[sample])
        return first;
    uint64_t last = (to_ns - 1) * HOT_WHEN_BUCKETS / p->duration_ns;
    return last < first ? first : last < HOT_WHEN_BUCKETS ? (size_t)last : HOT_WHEN_BUCKETS - 1;
}

/* When a bucket ends; the last one never does. */
static uint64_t when_end(const struct profile *p, size_t bucket)
{
    uint64_t end = (bucket + 1) * p->duration_ns;
    return bucket + 1 < HOT_WHEN_BUCKETS ? (end + HOT_WHEN_BUCKETS - 1) / HOT_WHEN_BUCKETS : UINT64_MAX;
}

void hot_when_add(const struct profile *p, size_t sample, uint64_t *when)
{
    size_t first = when_bucket(p, sample), last = when_last(p, sample, first);
    uint64_t at_ns = p->sample_time_ns[sample], left = p->sample_weight[sample];
    for (size_t bucket = first; bucket < last; bucket++) {
        uint64_t end_ns = when_end(p, bucket), part = end_ns > at_ns ? end_ns - at_ns : 0;
        part = part < left ? part : left;
        when[bucket] += part;
        at_ns += part;
        left -= part;
    }
    when[last] += left;
}

/* After sorting the rows moved: frames find theirs again by name. */
static void hot_reindex(struct hot_build *b, enum hot_by by)
{
    id_map_clear(&b->index);
    for (size_t i = 0; i < b->table->count; i++) {
        const struct hot_row *row = &b->table->rows[i];
        uint64_t hash =
            hot_hash(span_of(row->name, strlen(row->name)), row->module, b->lines ? row->line : 0);
        id_map_add(&b->index, hash, (uint32_t)i + 1);
    }
    for (uint32_t frame = 1; frame < b->p->frame_count; frame++)
        b->row_of_frame[frame] = hot_row_of_frame(b, frame, by);
}

/* Samples of each row, and when: only rows that are shown are worth the walk up each stack. */
static void hot_add_when(struct hot_build *b, size_t shown)
{
    const struct profile *p = b->p;
    struct hot_row *rows = b->table->rows;
    size_t *stamp = mem_alloc(b->table->count + 1, sizeof *stamp);
    for (size_t i = 0; i < p->sample_count; i++) {
        uint32_t leaf = b->row_of_frame[p->nodes[p->sample_node[i]].frame];
        if (leaf)
            rows[leaf - 1].samples += profile_samples_at(p, i);
        for (uint32_t node = p->sample_node[i]; node; node = p->nodes[node].parent) {
            uint32_t row = b->row_of_frame[p->nodes[node].frame];
            if (row > shown || stamp[row] == i + 1)
                continue;
            stamp[row] = i + 1;
            hot_when_add(p, i, rows[row - 1].when);
        }
    }
    free(stamp);
}

static void hot_by_frames(struct hot_build *b, enum hot_by by, bool inclusive, size_t shown)
{
    b->row_of_frame = mem_alloc(b->p->frame_count, sizeof *b->row_of_frame);
    for (uint32_t frame = 1; frame < b->p->frame_count; frame++)
        b->row_of_frame[frame] = hot_row_of_frame(b, frame, by);
    hot_add_nodes(b);
    if (b->table->count) /* not where filters left nothing */
        qsort(b->table->rows, b->table->count, sizeof *b->table->rows,
              inclusive ? hot_compare_total : hot_compare_self);
    hot_reindex(b, by);
    if (b->p->sample_node)
        hot_add_when(b, shown ? shown : b->table->count);
    free(b->row_of_frame);
}

static void hot_by_threads(struct hot_build *b, enum hot_by by)
{
    const struct profile *p = b->p;
    uint32_t *row_of = mem_alloc(p->thread_count, sizeof *row_of);
    for (uint32_t i = 1; i < p->thread_count; i++) {
        const struct profile_thread *t = &p->threads[i];
        char name[512];
        int size;
        if (by == HOT_BY_THREAD)
            size = snprintf(name, sizeof name, "%.400s (%u)", t->name[0] ? t->name : t->process_name, t->tid);
        else
            size = snprintf(name, sizeof name, "%.400s (%u)", t->process_name, t->pid);
        row_of[i] = hot_row_of(b, span_of(name, (size_t)size), t->process_name, &(struct hot_row){ 0 });
    }
    for (size_t i = 0; i < p->sample_count; i++) {
        struct hot_row *row = &b->table->rows[row_of[p->sample_thread[i]] - 1];
        row->self += p->sample_weight[i];
        row->total += p->sample_weight[i];
        row->samples += profile_samples_at(p, i);
        hot_when_add(p, i, row->when);
    }
    hot_table_sort(b->table);
    free(row_of);
}

void hot_table_build(const struct profile *p, enum hot_by by, bool inclusive, size_t shown,
                     struct hot_table *out)
{
    *out = (struct hot_table){ 0 };
    arena_init(&out->arena, SIZE_MAX); /* for parts of texts that had room in the profile */
    struct hot_build b = { .p = p, .table = out };
    if (!p->sample_count)
        return;
    b.lines = p->by_line && by == HOT_BY_FUNCTION;
    if (by == HOT_BY_THREAD || by == HOT_BY_PROCESS)
        hot_by_threads(&b, by);
    else
        hot_by_frames(&b, by, inclusive, shown);
    id_map_done(&b.index);
}

void hot_table_done(struct hot_table *table)
{
    free(table->rows);
    arena_done(&table->arena);
    *table = (struct hot_table){ 0 };
}

double hot_when_full(const struct profile *p)
{
    uint64_t all[HOT_WHEN_BUCKETS] = { 0 }, busiest = 0;
    if (strcmp(p->weight_unit, "ns") == 0)
        return (double)p->duration_ns / HOT_WHEN_BUCKETS;
    for (size_t i = 0; i < p->sample_count; i++)
        hot_when_add(p, i, all);
    for (size_t i = 0; i < HOT_WHEN_BUCKETS; i++)
        busiest = all[i] > busiest ? all[i] : busiest;
    return (double)busiest;
}

/* The scale is PerfView's: a digit for each 10 % of one CPU, letters above 100 %. */
void hot_when_text(const struct hot_row *row, double full, char out[HOT_WHEN_BUCKETS + 1])
{
    for (size_t i = 0; i < HOT_WHEN_BUCKETS; i++) {
        double percent = full > 0 ? (double)row->when[i] * 100 / full : 0;
        char c = '_';
        if (percent >= 360)
            c = '*';
        else if (percent >= 100)
            c = (char)('A' + (int)((percent - 100) / 10));
        else if (percent >= 10)
            c = (char)('0' + (int)(percent / 10));
        else if (percent >= 1)
            c = '0';
        else if (percent >= 0.1)
            c = 'o';
        else if (percent > 0)
            c = '.';
        out[i] = c;
    }
    out[HOT_WHEN_BUCKETS] = 0;
}
