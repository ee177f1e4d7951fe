#include "base/time_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    FIRST_CHUNK_BYTES = 16 * 1024, /* enough for what is quiet */
    CHUNK_BYTES = 256 * 1024,
    BRING_AHEAD = 8, /* items, from memory before they are handed over: they were written a while ago */
    TELL_AHEAD = 4,
    WANTED_DECAY = 16, /* rounds, in which a burst is forgotten by two thirds */
};

static size_t aligned(size_t size)
{
    return (size + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

void time_queue_init(struct time_queue *q, size_t bytes_max)
{
    *q = (struct time_queue){ .bytes_max = bytes_max };
}

void time_queue_done(struct time_queue *q)
{
    for (size_t i = 0; i < q->chunk_count; i++)
        free(q->chunks[i].bytes);
    free(q->chunks);
    free(q->items);
    free(q->aside);
    *q = (struct time_queue){ 0 };
}

/* A chunk that nothing waits in: rather one with memory, rather one that ever was. */
static size_t chunk_unused(struct time_queue *q)
{
    size_t found = q->chunk_count;
    for (size_t i = 0; i < q->chunk_count; i++) {
        if (q->chunks[i].waiting)
            continue;
        found = i;
        if (q->chunks[i].bytes)
            break;
    }
    if (found == q->chunk_count) {
        q->chunks = mem_grow(q->chunks, &q->chunk_capacity, q->chunk_count + 1, sizeof *q->chunks);
        q->chunks[q->chunk_count++] = (struct time_chunk){ 0 };
    }
    return found;
}

static void chunk_open(struct time_queue *q, size_t size)
{
    q->filling = chunk_unused(q);
    struct time_chunk *chunk = &q->chunks[q->filling];
    chunk->used = 0;
    if (chunk->capacity >= size)
        return;
    free(chunk->bytes);
    size_t least = q->chunk_count > 1 ? CHUNK_BYTES : FIRST_CHUNK_BYTES;
    chunk->capacity = aligned(size > least ? size : least);
    chunk->bytes = mem_alloc(chunk->capacity, 1);
}

static size_t room_left(const struct time_queue *q)
{
    return q->chunk_count ? q->chunks[q->filling].capacity - q->chunks[q->filling].used : 0;
}

uint8_t *time_queue_room(struct time_queue *q, size_t size_max)
{
    if (size_max > UINT32_MAX || size_max > q->bytes_max || q->live_bytes > q->bytes_max - size_max)
        return NULL;
    if (q->chunk_count == 0 || room_left(q) < size_max)
        chunk_open(q, size_max);
    return q->chunks[q->filling].bytes + q->chunks[q->filling].used;
}

void time_queue_add_made(struct time_queue *q, uint64_t time_ns, uint32_t kind, size_t size)
{
    struct time_chunk *chunk = &q->chunks[q->filling];
    if (q->count > q->first && q->items[q->count - 1].time_ns > time_ns)
        q->unsorted = true;
    q->items = mem_grow(q->items, &q->capacity, q->count + 1, sizeof *q->items);
    q->items[q->count++] = (struct time_item){
        .time_ns = time_ns,
        .chunk = (uint32_t)q->filling,
        .offset = (uint32_t)chunk->used,
        .size = (uint32_t)size,
        .kind = kind,
    };
    q->busy += chunk->waiting++ == 0;
    chunk->used += aligned(size);
    q->live_bytes += size;
}

bool time_queue_add(struct time_queue *q, uint64_t time_ns, uint32_t kind, struct span bytes)
{
    uint8_t *room = time_queue_room(q, bytes.size);
    if (!room)
        return false;
    if (bytes.size)
        memcpy(room, bytes.data, bytes.size);
    time_queue_add_made(q, time_ns, kind, bytes.size);
    return true;
}

/* How many of `count` items in order are no newer than `time_ns`, or older. */
static size_t items_before(const struct time_item *items, size_t count, uint64_t time_ns, bool or_equal)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (items[middle].time_ns < time_ns || (or_equal && items[middle].time_ns == time_ns))
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* Merges [from, middle) and [middle, to), each in order. Equal times keep theirs; what is in place is not
 * touched. */
static void merge_items(struct time_queue *q, size_t from, size_t middle, size_t to)
{
    struct time_item *items = q->items;
    from += items_before(items + from, middle - from, items[middle].time_ns, true);
    to = middle + items_before(items + middle, to - middle, items[middle - 1].time_ns, false);
    size_t moved = middle - from, at = from, i = 0;
    q->aside = mem_grow(q->aside, &q->aside_capacity, moved, sizeof *q->aside);
    memcpy(q->aside, items + from, moved * sizeof *items);
    for (size_t right = middle; i < moved; at++)
        items[at] = right < to && items[right].time_ns < q->aside[i].time_ns ? items[right++] : q->aside[i++];
}

static size_t run_end(const struct time_queue *q, size_t from)
{
    size_t to = from + 1;
    while (to < q->count && q->items[to - 1].time_ns <= q->items[to].time_ns)
        to++;
    return to;
}

/*
 * Sources are in order each, so what was read of one is a run: a few runs are merged, each with one of its
 * size. One left open is more than twice as long as the next, so that there are never more of them than a
 * size has bits.
 */
static void sort_items(struct time_queue *q)
{
    size_t open[64 + 2], count = 0;
    for (size_t at = q->first, to; at < q->count; at = to) {
        to = run_end(q, at);
        open[count++] = at;
        for (; count >= 2 && 2 * (to - open[count - 1]) >= open[count - 1] - open[count - 2]; count--)
            merge_items(q, open[count - 2], open[count - 1], to);
    }
    for (; count >= 2; count--)
        merge_items(q, open[count - 2], open[count - 1], q->count);
}

/* Gives back the memory of chunks that no round of late had in use. */
static void chunks_give_back(struct time_queue *q)
{
    size_t kept = 0;
    for (size_t i = 0; i < q->chunk_count; i++) {
        struct time_chunk *chunk = &q->chunks[i];
        if (!chunk->bytes || ++kept <= q->wanted + 1 || chunk->waiting || i == q->filling)
            continue;
        free(chunk->bytes);
        *chunk = (struct time_chunk){ 0 };
    }
}

/* Forgets the items that were handed over: when they are half of all, so that few are moved. */
static void items_compact(struct time_queue *q)
{
    if (q->first == 0 || q->first < q->count - q->first)
        return;
    q->count -= q->first;
    memmove(q->items, q->items + q->first, q->count * sizeof *q->items);
    q->first = 0;
}

static void sort_once(struct time_queue *q)
{
    if (q->unsorted)
        sort_items(q);
    q->unsorted = false;
}

uint64_t time_queue_middle_ns(struct time_queue *q)
{
    sort_once(q);
    return q->items[q->first + (q->count - q->first) / 2].time_ns;
}

static void chunk_take(struct time_queue *q, size_t index)
{
    struct time_chunk *chunk = &q->chunks[index];
    if (--chunk->waiting)
        return;
    chunk->used = 0;
    q->busy--;
}

static struct span item_bytes(const struct time_queue *q, const struct time_item *item)
{
    return span_of(q->chunks[item->chunk].bytes + item->offset, item->size);
}

/* What comes after the first item, so that nobody waits for memory then. */
static void look_ahead(const struct time_queue *q, void *user)
{
    const struct time_item *first = &q->items[q->first];
    size_t count = q->count - q->first;
    if (count > BRING_AHEAD) {
        const uint8_t *bytes = item_bytes(q, &first[BRING_AHEAD]).data;
        __builtin_prefetch(bytes);
        __builtin_prefetch(bytes + MEM_LINE_BYTES);
    }
    if (q->expect && count > TELL_AHEAD)
        q->expect(user, &first[TELL_AHEAD], item_bytes(q, &first[TELL_AHEAD]));
}

void time_queue_hand_over(struct time_queue *q, uint64_t until_ns, time_queue_fn *take, void *user)
{
    sort_once(q);
    q->wanted = q->wanted * (WANTED_DECAY - 1) / WANTED_DECAY;
    if (q->busy > q->wanted)
        q->wanted = q->busy;
    for (; q->first < q->count && q->items[q->first].time_ns <= until_ns; q->first++) {
        struct time_item item = q->items[q->first]; /* whoever takes it may add others */
        look_ahead(q, user);
        q->live_bytes -= item.size;
        take(user, &item, item_bytes(q, &item));
        chunk_take(q, item.chunk);
    }
}

void time_queue_forget(struct time_queue *q)
{
    items_compact(q);
    chunks_give_back(q);
}

void time_queue_release(struct time_queue *q, uint64_t until_ns, time_queue_fn *take, void *user)
{
    time_queue_hand_over(q, until_ns, take, user);
    time_queue_forget(q);
}
