#include "analyse/call_neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What is needed while the samples are walked. */
struct call_walk {
    const struct profile *p;
    struct call_neighbours *out;
    bool callers;
    uint32_t *function_of_frame; /* index + 1 into out->functions, 0: not meant */
    size_t *function_seen;       /* by that index + 1: the last sample (plus 1) that has it */
    uint32_t *row_of_frame;      /* index + 1 into the table's rows, 0: none yet; [0]: no neighbour */
    size_t *frame_seen;          /* by neighbour: the last sample (plus 1) that counted for it */
    size_t row_capacity;
};

static int compare_names(const void *a, const void *b)
{
    const struct call_function *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    order = order ? order : strcmp(x->module, y->module);
    return order ? order : (x->frame > y->frame) - (x->frame < y->frame);
}

static int compare_weights(const void *a, const void *b)
{
    const struct call_function *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return compare_names(a, b);
}

static bool is_meant(const char *name, const char *asked, bool exact)
{
    return exact ? strcmp(name, asked) == 0 : strstr(name, asked) != NULL;
}

/* The frames that are meant, sorted so that those of one function stand together. The caller frees. */
static struct call_function *find_frames(const struct profile *p, const char *asked, bool exact,
                                         size_t *out_count)
{
    struct call_function *found = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t i = 1; i < p->frame_count; i++) {
        const struct profile_frame *f = &p->frames[i];
        if (!is_meant(f->name, asked, exact))
            continue;
        found = mem_grow(found, &capacity, count + 1, sizeof *found);
        found[count++] = (struct call_function){ f->name, f->module, i, 0 };
    }
    if (count)
        qsort(found, count, sizeof *found, compare_names);
    *out_count = count;
    return found;
}

/* One entry for each function is left of its frames. */
static void join_frames(struct call_walk *walk, size_t frames)
{
    struct call_function *functions = walk->out->functions;
    size_t count = 0;
    for (size_t i = 0; i < frames; i++) {
        const struct call_function *last = count ? &functions[count - 1] : NULL;
        if (!last || strcmp(last->name, functions[i].name) != 0 ||
            strcmp(last->module, functions[i].module) != 0)
            functions[count++] = functions[i];
        walk->function_of_frame[functions[i].frame] = (uint32_t)count;
    }
    walk->out->function_count = count;
}

/* The neighbour's row, added when new. */
static struct hot_row *row_of(struct call_walk *walk, uint32_t frame)
{
    struct hot_table *table = &walk->out->table;
    if (!walk->row_of_frame[frame]) {
        table->rows = mem_grow(table->rows, &walk->row_capacity, table->count + 1, sizeof *table->rows);
        table->rows[table->count] =
            frame ? hot_row_like(&walk->p->frames[frame])
                  : (struct hot_row){ .name = walk->callers ? "[root]" : "[self]", .module = "" };
        walk->row_of_frame[frame] = (uint32_t)++table->count;
    }
    return &table->rows[walk->row_of_frame[frame] - 1];
}

static void add_neighbour(struct call_walk *walk, size_t sample, uint32_t frame)
{
    if (walk->frame_seen[frame] == sample + 1)
        return;
    walk->frame_seen[frame] = sample + 1;
    struct hot_row *row = row_of(walk, frame);
    row->total += walk->p->sample_weight[sample];
    row->samples += profile_samples_at(walk->p, sample);
    hot_when_add(walk->p, sample, row->when);
}

static void add_function(struct call_walk *walk, size_t sample, uint32_t function)
{
    if (walk->function_seen[function] == sample + 1)
        return;
    walk->function_seen[function] = sample + 1;
    walk->out->functions[function - 1].total += walk->p->sample_weight[sample];
}

static void add_sample(struct call_walk *walk, size_t sample)
{
    const struct profile *p = walk->p;
    struct hot_row *focus = &walk->out->focus;
    uint32_t leaf = p->sample_node[sample], below = 0;
    bool holds = false;
    for (uint32_t node = leaf; node; node = p->nodes[node].parent) {
        uint32_t frame = p->nodes[node].frame, function = walk->function_of_frame[frame];
        if (function) {
            add_function(walk, sample, function);
            add_neighbour(walk, sample, walk->callers ? p->nodes[p->nodes[node].parent].frame : below);
            holds = true;
        }
        below = frame;
    }
    if (!holds)
        return;
    focus->total += p->sample_weight[sample];
    hot_when_add(p, sample, focus->when);
    if (walk->function_of_frame[p->nodes[leaf].frame]) {
        focus->self += p->sample_weight[sample];
        focus->samples += profile_samples_at(p, sample);
    }
}

/* Names the focus by what is the same of all that is meant. */
static void describe_focus(struct call_neighbours *n, const struct profile *p)
{
    if (n->function_count > 1) {
        n->focus.name = n->exact ? n->functions[0].name : NULL;
        n->focus.module = "";
        return;
    }
    struct hot_row like = hot_row_like(&p->frames[n->functions[0].frame]);
    n->focus.name = like.name;
    n->focus.module = like.module;
    n->focus.kind = like.kind;
    n->focus.tier = like.tier;
    n->focus.file = like.file;
    if (!p->by_line) { /* else its lines differ */
        n->focus.line = like.line;
        n->focus.line_of_method = like.line_of_method;
    }
}

static void walk_samples(struct call_walk *walk, size_t frames)
{
    const struct profile *p = walk->p;
    walk->function_of_frame = mem_alloc(p->frame_count, sizeof *walk->function_of_frame);
    walk->row_of_frame = mem_alloc(p->frame_count, sizeof *walk->row_of_frame);
    walk->frame_seen = mem_alloc(p->frame_count, sizeof *walk->frame_seen);
    join_frames(walk, frames);
    walk->function_seen = mem_alloc(walk->out->function_count + 1, sizeof *walk->function_seen);
    for (size_t i = 0; i < p->sample_count; i++)
        add_sample(walk, i);
    free(walk->function_of_frame);
    free(walk->row_of_frame);
    free(walk->frame_seen);
    free(walk->function_seen);
}

bool call_neighbours_build(const struct profile *p, const char *asked, bool callers,
                           struct call_neighbours *out)
{
    size_t frames;
    bool exact = true;
    struct call_function *found = find_frames(p, asked, exact, &frames);
    if (!found) {
        exact = false;
        found = find_frames(p, asked, exact, &frames);
    }
    if (!found)
        return false;
    *out = (struct call_neighbours){ .functions = found, .exact = exact };
    arena_init(&out->table.arena, SIZE_MAX); /* nothing is in it: names are the profile's */
    struct call_walk walk = { .p = p, .out = out, .callers = callers };
    walk_samples(&walk, frames);
    qsort(out->functions, out->function_count, sizeof *out->functions, compare_weights);
    hot_table_sort(&out->table);
    describe_focus(out, p);
    return true;
}

void call_neighbours_done(struct call_neighbours *n)
{
    hot_table_done(&n->table);
    free(n->functions);
    *n = (struct call_neighbours){ 0 };
}
