#include "analyse/gc_sizes.h"

static const struct gc_heap_record *heap_first(const struct gc_stats *stats, const struct gc_record *r)
{
    return r->first_heap ? &stats->heaps[r->first_heap] : NULL;
}

static const struct gc_heap_record *heap_next(const struct gc_stats *stats, const struct gc_heap_record *heap)
{
    return heap->next ? &stats->heaps[heap->next] : NULL;
}

static const struct gc_heap_gen *heap_gen(const struct gc_stats *stats, const struct gc_record *r,
                                          uint32_t heap, unsigned gen)
{
    for (const struct gc_heap_record *h = heap_first(stats, r); h; h = heap_next(stats, h))
        if (h->told.heap == heap && gen < h->told.gens)
            return &h->told.gen[gen];
    return NULL;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Without the free space between them. */
static uint64_t objects_before(const struct gc_heap_gen *g)
{
    return less(g->before, g->free_list_before + g->free_obj_before);
}

static uint64_t objects_after(const struct gc_heap_gen *g)
{
    return less(g->after, g->free_list_after + g->free_obj_after);
}

static void sum_gen(const struct gc_stats *stats, struct gc_record *r, unsigned gen)
{
    struct gc_gen_record *sum = &r->gen[gen];
    bool collected = gen <= r->generation || r->generation == 2;
    unsigned heaps = 0;
    double survival = 0;
    for (const struct gc_heap_record *h = heap_first(stats, r); h; h = heap_next(stats, h)) {
        if (gen >= h->told.gens)
            continue;
        const struct gc_heap_gen *g = &h->told.gen[gen];
        uint64_t before = objects_before(g), out = g->pinned_survived + g->other_survived;
        sum->before += g->before;
        sum->after += g->after;
        sum->in += g->in;
        sum->out += out;
        sum->fragmentation += g->free_list_after + g->free_obj_after;
        sum->budget += g->budget;
        survival += before ? (double)out / (double)before : 0;
        heaps++;
    }
    sum->has_survival = collected && heaps;
    /* what is allocated while one goes on in the background survives it, too */
    sum->survival_share = !heaps ? 0 : survival > heaps ? 1 : survival / heaps;
}

static bool goes_on(const struct gc_record *r, uint64_t at_ns)
{
    return r->kind == GC_KIND_BACKGROUND && r->end_ns > at_ns;
}

/* What `by` left of a generation, as it began where it still goes on. */
static uint64_t objects_left(const struct gc_heap_gen *g, unsigned gen, const struct gc_record *by,
                             uint64_t at_ns)
{
    uint64_t left = objects_after(g);
    bool not_looked_at = gen >= GC_EVENT_LARGE && !left && by->generation == 0;
    return not_looked_at || goes_on(by, at_ns) ? objects_before(g) : left;
}

/* What was made while `by` went on in the background: it is measured as it begins and as it ends. */
static uint64_t made_meanwhile(const struct gc_heap_gen *g, const struct gc_record *by, uint64_t at_ns)
{
    return by->kind != GC_KIND_BACKGROUND || goes_on(by, at_ns) ? 0 : less(g->after, g->before);
}

/* A collection, and those around it that say what was allocated before it. */
struct neighbours {
    const struct gc_record *previous;
    const struct gc_record
        *within; /* the first that began while this one went on in the background, or NULL */
    const struct gc_record *ended; /* in the background, begun before `previous` and ended since, or NULL */
};

/* What was allocated since `previous` in a generation that every collection looks at. */
static uint64_t allocated_small(const struct gc_heap_gen *g, const struct gc_heap_gen *then,
                                const struct gc_record *previous, unsigned gen, uint64_t at_ns)
{
    uint64_t made = objects_before(g) + made_meanwhile(then, previous, at_ns);
    return less(made, objects_left(then, gen, previous, at_ns));
}

/*
 * The same of what only a full collection looks at. Of these one in the background tells as "before" what
 * there was when it had marked, so that another one tells what it began with; and what it frees is between
 * two that did not look.
 */
static uint64_t allocated_large(const struct gc_stats *stats, const struct gc_record *r,
                                const struct neighbours *n, const struct gc_heap_record *h, unsigned gen)
{
    const struct gc_heap_gen *then = heap_gen(stats, n->previous, h->told.heap, gen), *g = &h->told.gen[gen];
    const struct gc_heap_gen *within = n->within ? heap_gen(stats, n->within, h->told.heap, gen) : NULL;
    const struct gc_heap_gen *ended = n->ended ? heap_gen(stats, n->ended, h->told.heap, gen) : NULL;
    uint64_t at_ns = r->start_ns;
    if (ended)
        return less(objects_before(ended), objects_left(then, gen, n->previous, at_ns)) +
               less(objects_before(g), objects_after(ended));
    return goes_on(n->previous, at_ns) ? 0 /* it counts until then */
                                       : allocated_small(within ? within : g, then, n->previous, gen, at_ns);
}

/* Only where objects are allocated, not promoted to. */
static void sum_allocated(const struct gc_stats *stats, struct gc_record *r, const struct neighbours *n,
                          unsigned gen)
{
    for (const struct gc_heap_record *h = heap_first(stats, r); h; h = heap_next(stats, h)) {
        const struct gc_heap_gen *then = heap_gen(stats, n->previous, h->told.heap, gen);
        if (gen >= h->told.gens || !then)
            continue;
        r->gen[gen].allocated +=
            gen >= GC_EVENT_LARGE ? allocated_large(stats, r, n, h, gen)
                                  : allocated_small(&h->told.gen[gen], then, n->previous, gen, r->start_ns);
    }
    r->allocated += r->gen[gen].allocated;
}

static void fill_allocated(const struct gc_stats *stats, struct gc_record *r, const struct neighbours *n)
{
    r->has_allocated = true;
    if (r->first_heap && n->previous && n->previous->first_heap) {
        sum_allocated(stats, r, n, 0);
        sum_allocated(stats, r, n, GC_EVENT_LARGE);
        sum_allocated(stats, r, n, GC_EVENT_PINNED);
    } else if (r->has_ticks) {
        r->gen[0].allocated = r->tick_small_bytes;
        r->gen[GC_EVENT_LARGE].allocated = r->tick_large_bytes;
        r->allocated = r->tick_small_bytes + r->tick_large_bytes;
    } else {
        r->has_allocated = false;
    }
}

static void fill_one(const struct gc_stats *stats, struct gc_record *r, const struct neighbours *n)
{
    r->has_before = r->first_heap != 0;
    for (unsigned gen = 0; r->has_before && gen < GC_EVENT_GENS; gen++) {
        sum_gen(stats, r, gen);
        r->heap_before += r->gen[gen].before;
    }
    for (unsigned gen = 0; r->has_stats && gen < GC_EVENT_GENS; gen++)
        r->gen[gen].after = r->stats.size_bytes[gen];
    fill_allocated(stats, r, n);
    r->peak = r->heap_before;
}

/* `background`: the last one in the background that began before row `i`, or NULL. */
static struct neighbours neighbours_of(const struct gc_record *rows, size_t count, size_t i,
                                       const struct gc_record *background)
{
    struct neighbours n = { .previous = i ? &rows[i - 1] : NULL };
    if (i + 1 < count && goes_on(&rows[i], rows[i + 1].start_ns))
        n.within = &rows[i + 1];
    if (background && background != n.previous && goes_on(background, n.previous->start_ns) &&
        !goes_on(background, rows[i].start_ns))
        n.ended = background;
    return n;
}

void gc_sizes_fill(struct gc_stats *stats, struct gc_record *rows, size_t count)
{
    const struct gc_record *background = NULL;
    for (size_t i = 0; i < count; i++) {
        struct gc_record *r = &rows[i];
        struct neighbours n = neighbours_of(rows, count, i, background);
        fill_one(stats, r, &n);
        if (r->kind == GC_KIND_BACKGROUND)
            background = r;
        else if (background && r->start_ns < background->end_ns && background->peak < r->heap_before)
            rows[background - rows].peak = r->heap_before;
    }
}
