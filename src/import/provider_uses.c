#include "import/provider_uses.h"

#include <stdlib.h>

#include "base/mem.h"

enum { ANY_OF_MAX = 8 }; /* sets of keywords that a provider's events have */

/* What a provider told of a process at most, from which follows what it was asked at least. */
struct provider_use {
    uint32_t process, provider;
    uint64_t keywords;           /* of events with one: that was asked for */
    uint64_t any_of[ANY_OF_MAX]; /* of events with several: one of them was */
    size_t any_of_count;
    uint8_t level;
};

void provider_uses_done(struct provider_uses *uses)
{
    free(uses->rows);
    id_map_done(&uses->ids);
    *uses = (struct provider_uses){ 0 };
}

static bool use_same(const void *table, uint32_t id, const void *key)
{
    const struct provider_use *row = (const struct provider_use *)table + id, *wanted = key;
    return row->process == wanted->process && row->provider == wanted->provider;
}

static struct provider_use *use_of(struct provider_uses *uses, uint32_t process, uint32_t provider)
{
    struct provider_use key = { .process = process, .provider = provider };
    uint64_t hash = hash_pair(process, provider);
    uint32_t id = id_map_find(&uses->ids, hash, use_same, uses->rows, &key);
    if (!id) {
        size_t count = uses->count ? uses->count : 1;
        uses->cut |= count > PROVIDER_USES_MAX;
        if (count > PROVIDER_USES_MAX)
            return NULL;
        uses->rows = mem_grow(uses->rows, &uses->capacity, count + 1, sizeof *uses->rows);
        uses->rows[id = (uint32_t)count] = key;
        uses->count = count + 1;
        id_map_add(&uses->ids, hash, id);
    }
    return &uses->rows[id];
}

/* Without the bits that event sources add for sessions. */
static uint64_t own_keywords(uint64_t keywords)
{
    return keywords & UINT64_C(0xfffffffffff);
}

static void note_keywords(struct provider_use *use, uint64_t keywords)
{
    uint64_t own = own_keywords(keywords);
    if ((own & (own - 1)) == 0 || use->any_of_count == ANY_OF_MAX) {
        use->keywords |= keywords;
        return;
    }
    for (size_t i = 0; i < use->any_of_count; i++)
        if (use->any_of[i] == keywords)
            return;
    use->any_of[use->any_of_count++] = keywords;
}

void provider_uses_note(struct provider_uses *uses, uint32_t process, uint32_t provider, uint64_t keywords,
                        uint32_t level)
{
    struct provider_use *use = use_of(uses, process, provider);
    if (!use)
        return;
    note_keywords(use, keywords);
    if (level > use->level)
        use->level = level < UINT8_MAX ? (uint8_t)level : UINT8_MAX;
}

/* An event of several keywords comes for each of them: where one is known to be asked for the others are not.
 */
static uint64_t keywords_of(const struct provider_use *use)
{
    uint64_t keywords = use->keywords;
    for (size_t i = 0; i < use->any_of_count; i++)
        if (!own_keywords(use->any_of[i] & use->keywords))
            keywords |= use->any_of[i];
    return keywords;
}

void provider_uses_tell(const struct provider_uses *uses, struct trace *t, uint64_t from_ns, uint64_t to_ns)
{
    for (size_t i = 1; i < uses->count; i++) {
        uint32_t id = trace_push(&t->subscriptions);
        t->subscriptions.rows[id] = (struct trace_subscription){
            .process = uses->rows[i].process,
            .provider = uses->rows[i].provider,
            .keywords = keywords_of(&uses->rows[i]),
            .from_ns = from_ns,
            .to_ns = to_ns,
            .level = uses->rows[i].level,
        };
    }
}
