/*
 * chain_cache: remembers which stack a raw callchain became, so that a hot chain is interned once.
 *
 * Keyed by 96 bits of a hash of the chain and its context; equal keys are taken for equal chains.
 */
#ifndef CLRPERF_TRACE_CHAIN_CACHE_H
#define CLRPERF_TRACE_CHAIN_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct chain_key {
    uint64_t low, high;
};

struct chain_cache;

/* `limit`: entries it may hold; when full it starts afresh. */
struct chain_cache *chain_cache_new(size_t limit);
void chain_cache_free(struct chain_cache *cache);
/* Of the addresses alone. */
struct chain_key chain_hash_of(const uint64_t *kernel, size_t kernel_count, const uint64_t *user,
                               size_t user_count);
/* The same of a callchain as it was captured. */
struct chain_key chain_hash_of_bytes(struct span chain);
/* `context`: everything else that decides what the addresses mean. */
struct chain_key chain_key_in(struct chain_key hash, uint64_t context);
/* Has the key's place brought from memory, for a chain_cache_find() that comes a little later. */
void chain_cache_prefetch(const struct chain_cache *cache, struct chain_key key);
/* The stack, or 0. */
uint32_t chain_cache_find(const struct chain_cache *cache, struct chain_key key);
void chain_cache_add(struct chain_cache *cache, struct chain_key key, uint32_t stack);

#endif
