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

/*
 * What was made while `by` went on in the background: it is measured as it begins and as it ends. Ticks tell
 * of all until then.
 */
static uint64_t made_meanwhile(const struct gc_heap_gen *g, const struct gc_record *by, uint64_t at_ns)
{
    bool is_told = by->kind != GC_KIND_BACKGROUND || by->has_ticks || goes_on(by, at_ns);
    return is_told ? 0 : less(g->after, g->before);
}

/* What was allocated in a generation since `previous`: only where objects are allocated, not promoted to. */
static void sum_allocated(const struct gc_stats *stats, struct gc_record *r, const struct gc_record *previous,
                          unsigned gen)
{
    for (const struct gc_heap_record *h = heap_first(stats, r); h; h = heap_next(stats, h)) {
        const struct gc_heap_gen *then = heap_gen(stats, previous, h->told.heap, gen);
        if (gen >= h->told.gens || !then)
            continue;
        uint64_t made = objects_before(&h->told.gen[gen]) + made_meanwhile(then, previous, r->start_ns);
        r->gen[gen].allocated += less(made, objects_left(then, gen, previous, r->start_ns));
    }
    r->allocated += r->gen[gen].allocated;
}

static void fill_allocated(const struct gc_stats *stats, struct gc_record *r,
                           const struct gc_record *previous)
{
    if (r->kind == GC_KIND_BACKGROUND && r->has_ticks) {
        r->gen[0].allocated = r->tick_small_bytes;
        r->gen[GC_EVENT_LARGE].allocated = r->tick_large_bytes;
        r->allocated = r->tick_small_bytes + r->tick_large_bytes;
        r->has_allocated = true;
    } else if (r->first_heap && previous && previous->first_heap) {
        sum_allocated(stats, r, previous, 0);
        sum_allocated(stats, r, previous, GC_EVENT_LARGE);
        sum_allocated(stats, r, previous, GC_EVENT_PINNED);
        r->has_allocated = true;
    } else if (r->has_ticks) {
        r->allocated = r->tick_small_bytes + r->tick_large_bytes;
        r->has_allocated = true;
    }
}

static void fill_one(const struct gc_stats *stats, struct gc_record *r, const struct gc_record *previous)
{
    r->has_before = r->first_heap != 0;
    for (unsigned gen = 0; r->has_before && gen < GC_EVENT_GENS; gen++) {
        sum_gen(stats, r, gen);
        r->heap_before += r->gen[gen].before;
    }
    for (unsigned gen = 0; r->has_stats && gen < GC_EVENT_GENS; gen++)
        r->gen[gen].after = r->stats.size_bytes[gen];
    fill_allocated(stats, r, previous);
    r->peak = r->heap_before;
}

void gc_sizes_fill(struct gc_stats *stats, struct gc_record *rows, size_t count)
{
    const struct gc_record *background = NULL;
    for (size_t i = 0; i < count; i++) {
        struct gc_record *r = &rows[i];
        fill_one(stats, r, i ? &rows[i - 1] : NULL);
        if (r->kind == GC_KIND_BACKGROUND)
            background = r;
        else if (background && r->start_ns < background->end_ns && background->peak < r->heap_before)
            rows[background - rows].peak = r->heap_before;
    }
}
