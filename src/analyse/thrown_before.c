#include "analyse/thrown_before.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void kinds_done(struct thrown_kinds *k)
{
    id_map_done(&k->ids);
    free(k->hashes);
    *k = (struct thrown_kinds){ 0 };
}

void thrown_before_done(struct thrown_before *t)
{
    kinds_done(&t->kinds[0]);
    kinds_done(&t->kinds[1]);
    free(t->awaits);
}

uint64_t thrown_before_kind(uint32_t process, struct span type, struct span message)
{
    return hash_pair(hash_pair(hash_bytes(type.data, type.size), hash_bytes(message.data, message.size)),
                     process);
}

static bool same_hash(const void *table, uint32_t id, const void *key)
{
    return ((const uint64_t *)table)[id - 1] == *(const uint64_t *)key;
}

static bool kinds_have(const struct thrown_kinds *k, uint64_t kind)
{
    return id_map_find(&k->ids, kind, same_hash, k->hashes, &kind) != 0;
}

bool thrown_before_has(const struct thrown_before *t, uint64_t kind)
{
    return kinds_have(&t->kinds[0], kind) || kinds_have(&t->kinds[1], kind);
}

void thrown_before_add(struct thrown_before *t, uint64_t kind)
{
    if (kinds_have(&t->kinds[0], kind))
        return;
    if (t->kinds[0].count == THROWN_BEFORE_MAX / 2) {
        kinds_done(&t->kinds[1]);
        t->kinds[1] = t->kinds[0];
        t->kinds[0] = (struct thrown_kinds){ 0 };
    }
    struct thrown_kinds *k = &t->kinds[0];
    k->hashes = mem_grow(k->hashes, &k->capacity, k->count + 1, sizeof *k->hashes);
    k->hashes[k->count++] = kind;
    id_map_add(&k->ids, kind, (uint32_t)k->count);
}

static bool is_of(const struct event_stacks *stacks, uint32_t node, const char *start)
{
    const struct profile_frame *frame = event_stacks_leaf(stacks, node);
    return frame && event_frame_is_of(frame, start);
}

/* Who awaits what is thrown there: above the awaiters. */
static uint32_t awaiting(const struct event_stacks *stacks, uint32_t node)
{
    while (is_of(stacks, node, "System.Runtime.") || is_of(stacks, node, "System.Threading.Tasks."))
        node = event_stacks_caller(stacks, node);
    return node;
}

/* The frame of a path to `node` right below `above`; 0 when that is not on it, or its end. */
static uint32_t below(const struct event_stacks *stacks, uint32_t above, uint32_t node)
{
    uint32_t last = 0;
    for (; node && node != above; node = event_stacks_caller(stacks, node))
        last = node;
    return node ? last : 0;
}

/* An async method that fails tells its task so, and who awaits that goes on at once; it does not start one.
 */
static bool tells_task(const struct event_stacks *stacks, uint32_t node)
{
    return is_of(stacks, node, "System.Threading.Tasks.") ||
           (is_of(stacks, node, "System.Runtime.CompilerServices.Async") &&
            !strstr(event_stacks_leaf(stacks, node)->name, "Start"));
}

/* What nobody but awaits throws: whether the thread's last one threw the same object. */
static bool awaited_again(struct thrown_before *t, uint64_t kind, const struct event_stacks *stacks,
                          uint32_t node, uint32_t thread)
{
    t->awaits = mem_grow_zeroed(t->awaits, &t->await_capacity, (size_t)thread + 1, sizeof *t->awaits);
    struct thrown_await *last = &t->awaits[thread], now = { .kind = kind, .site = awaiting(stacks, node) };
    bool again = thread && last->kind == kind && now.site && last->site &&
                 (below(stacks, now.site, last->site) || tells_task(stacks, below(stacks, last->site, node)));
    *last = now;
    return again;
}

bool thrown_before_passed_on(struct thrown_before *t, uint64_t kind, const struct event_stacks *stacks,
                             uint32_t node, uint32_t thread)
{
    if (!is_of(stacks, node, "System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw"))
        thrown_before_add(t, kind);
    else
        return thrown_before_has(t, kind) || awaited_again(t, kind, stacks, node, thread);
    return false;
}
