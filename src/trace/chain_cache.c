#include "trace/chain_cache.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/id_map.h"
#include "base/mem.h"

enum { HASH_PIECE_BYTES = 240 };
#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* 96 bits of the key are kept: looking a chain up is one wait for memory, so that four entries share a line.
 */
struct chain_entry {
    uint64_t low;
    uint32_t high;
    uint32_t stack; /* 0: free */
};

struct chain_cache {
    struct chain_entry *entries;
    size_t capacity; /* a power of two */
    size_t count, limit;
};

struct chain_cache *chain_cache_new(size_t limit)
{
    struct chain_cache *cache = mem_alloc(1, sizeof *cache);
    cache->limit = limit;
    cache->capacity = 1024;
    cache->entries = mem_alloc(cache->capacity, sizeof *cache->entries);
    return cache;
}

void chain_cache_free(struct chain_cache *cache)
{
    if (!cache)
        return;
    free(cache->entries);
    free(cache);
}

/* In pieces for which XXH3 needs no start and no end; a seed would make it derive its secret anew each time.
 */
static struct chain_key hash_more(struct chain_key key, struct span chain)
{
    do {
        size_t size = chain.size < HASH_PIECE_BYTES ? chain.size : HASH_PIECE_BYTES;
        XXH128_hash_t hash = XXH3_128bits(chain.data, size);
        key.low = key.low * HASH_FACTOR ^ hash.low64;
        key.high = key.high * HASH_FACTOR ^ hash.high64;
        chain = span_part(chain, size, chain.size - size);
    } while (chain.size);
    return key;
}

struct chain_key chain_hash_of_bytes(struct span chain)
{
    return hash_more((struct chain_key){ 0 }, chain);
}

struct chain_key chain_hash_of(const uint64_t *kernel, size_t kernel_count, const uint64_t *user,
                               size_t user_count)
{
    struct chain_key hash = chain_hash_of_bytes(span_of(user, user_count * sizeof *user));
    return kernel_count ? hash_more(hash, span_of(kernel, kernel_count * sizeof *kernel)) : hash;
}

struct chain_key chain_key_in(struct chain_key hash, uint64_t context)
{
    return (struct chain_key){ hash.low ^ context * HASH_FACTOR, hash.high * HASH_FACTOR ^ context };
}

static struct chain_entry *chain_cache_slot(const struct chain_cache *cache, struct chain_key key)
{
    size_t i = key.low & (cache->capacity - 1);
    while (cache->entries[i].stack &&
           (cache->entries[i].low != key.low || cache->entries[i].high != (uint32_t)key.high))
        i = (i + 1) & (cache->capacity - 1);
    return &cache->entries[i];
}

void chain_cache_prefetch(const struct chain_cache *cache, struct chain_key key)
{
    __builtin_prefetch(&cache->entries[key.low & (cache->capacity - 1)]);
}

uint32_t chain_cache_find(const struct chain_cache *cache, struct chain_key key)
{
    return chain_cache_slot(cache, key)->stack;
}

/* Doubles in place, as an id_map does. */
static void chain_cache_grow(struct chain_cache *cache)
{
    size_t old = cache->capacity, gap = 0;
    cache->capacity = old * 2;
    cache->entries = mem_resize(cache->entries, cache->capacity, sizeof *cache->entries);
    memset(cache->entries + old, 0, old * sizeof *cache->entries);
    while (cache->entries[gap].stack)
        gap++;
    for (size_t n = 1; n <= old; n++) {
        struct chain_entry *slot = &cache->entries[(gap + n) & (old - 1)], entry = *slot;
        *slot = (struct chain_entry){ 0 };
        if (entry.stack)
            *chain_cache_slot(cache, (struct chain_key){ entry.low, entry.high }) = entry;
    }
}

void chain_cache_add(struct chain_cache *cache, struct chain_key key, uint32_t stack)
{
    if (cache->count >= cache->limit) {
        memset(cache->entries, 0, cache->capacity * sizeof *cache->entries);
        cache->count = 0;
    }
    if ((cache->count + 1) * 2 > cache->capacity)
        chain_cache_grow(cache);
    struct chain_entry *slot = chain_cache_slot(cache, key);
    if (!slot->stack)
        cache->count++;
    *slot = (struct chain_entry){ key.low, (uint32_t)key.high, stack };
}
