#include "analyse/thrown_before.h"

#include <stdlib.h>

#include "analyse/event_stacks.h"
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

bool thrown_before_passed_on(struct thrown_before *t, uint64_t kind, const struct profile_frame *leaf)
{
    if (leaf && event_frame_is_of(leaf, "System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw"))
        return thrown_before_has(t, kind);
    thrown_before_add(t, kind);
    return false;
}
