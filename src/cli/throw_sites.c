#include "cli/throw_sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/mem.h"
#include "base/own.h"
#include "cli/address_facts.h"

enum {
    SITES_MAX = 512, /* a look takes some 15 ms */
    LOOKS_MAX = 4,
};

struct known_site {
    uint64_t addr;
    enum throw_site site;
};

struct throw_sites {
    throw_sites_ask_fn *ask;
    void *user;
    bool is_over; /* nobody is asked any more */
    struct id_map ids;
    struct known_site rows[SITES_MAX + THROW_FRAMES + 1]; /* [0] is unused */
    size_t count;
};

struct throw_sites *throw_sites_new(throw_sites_ask_fn *ask, void *user)
{
    struct throw_sites *sites = mem_alloc(1, sizeof *sites);
    sites->ask = ask;
    sites->user = user;
    sites->count = 1;
    return sites;
}

void throw_sites_free(struct throw_sites *sites)
{
    if (!sites)
        return;
    id_map_done(&sites->ids);
    free(sites);
}

static bool site_same(const void *table, uint32_t id, const void *key)
{
    return ((const struct throw_sites *)table)->rows[id].addr == *(const uint64_t *)key;
}

static uint32_t site_find(const struct throw_sites *sites, uint64_t addr)
{
    return id_map_find(&sites->ids, hash_pair(addr, 0), site_same, sites, &addr);
}

/* Asks for all that are not known yet, at once. */
static void learn(struct throw_sites *sites, const uint64_t *addrs, size_t count)
{
    uint64_t asked[THROW_FRAMES];
    enum throw_site answers[THROW_FRAMES] = { THROW_SITE_UNKNOWN };
    size_t asked_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!site_find(sites, addrs[i]))
            asked[asked_count++] = addrs[i];
    if (!asked_count || sites->is_over)
        return;
    sites->is_over = !sites->ask(sites->user, asked, asked_count, answers) || sites->count > SITES_MAX;
    for (size_t i = 0; i < asked_count && sites->count < ARRAY_LEN(sites->rows); i++) {
        if (site_find(sites, asked[i]))
            continue; /* it calls itself */
        uint32_t id = (uint32_t)sites->count++;
        sites->rows[id] = (struct known_site){ asked[i], answers[i] };
        id_map_add(&sites->ids, hash_pair(asked[i], 0), id);
    }
}

bool throw_sites_again(struct throw_sites *sites, const uint64_t *stack, size_t count)
{
    uint64_t addrs[THROW_FRAMES];
    if (count > THROW_FRAMES)
        count = THROW_FRAMES;
    for (size_t i = 0; i < count; i++)
        addrs[i] = stack[i] - (stack[i] != 0); /* in the call, behind which it goes on */
    for (size_t i = 0; i < count; i++) {
        if (!site_find(sites, addrs[i]))
            learn(sites, &addrs[i], count - i);
        enum throw_site site = sites->rows[site_find(sites, addrs[i])].site; /* row 0 is unknown */
        if (site != THROW_SITE_DISPATCH)
            return site == THROW_SITE_AGAIN;
    }
    return false;
}

/* Names. */

static enum throw_site site_of(const char *module, const char *function)
{
    static const char dispatch[] = "System.Runtime.EH.";
    if (!function)
        return THROW_SITE_UNKNOWN;
    if (module && strcmp(module, "System.Private.CoreLib") != 0)
        return THROW_SITE_OTHER;
    if (strncmp(function, dispatch, sizeof dispatch - 1) == 0)
        return THROW_SITE_DISPATCH;
    return strcmp(function, "System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw") == 0
               ? THROW_SITE_AGAIN
               : THROW_SITE_OTHER;
}

static void note_loss(struct throw_site_target *t, const struct error *why)
{
    if (t->noted || !t->note)
        return;
    AUTO_FREE char *text =
        mem_format("exceptions that an await throws again are counted as new ones: %s", why->what);
    t->note(t->user, text);
    t->noted = true;
}

/* A list of code that grows meanwhile, as it does with a program's first exceptions, is not believed: once
 * more. */
static bool look_at(const struct target *target, const uint64_t *addrs, size_t count,
                    struct address_facts *facts, struct error *err)
{
    const struct address_question question = { .addrs = addrs, .count = count, .by_memory_only = true };
    for (unsigned looks = 1;; looks++) {
        if (!address_facts_find(target, &question, facts, err))
            return false;
        if (facts->census.told_by == RESOLVER_MEMORY || looks == LOOKS_MAX ||
            facts->census.memory_error.kind == ERROR_PERMISSION)
            return true;
        address_facts_done(facts);
    }
}

bool throw_sites_ask_target(void *user, const uint64_t *addrs, size_t count, enum throw_site *out)
{
    struct throw_site_target *t = user;
    struct address_facts facts;
    struct error err = { 0 };
    if (t->target->runtime != RUNTIME_CORECLR)
        return false; /* methods of Native AOT have other names */
    if (!look_at(t->target, addrs, count, &facts, &err)) {
        note_loss(t, &err); /* it may have ended, with exceptions of it still on their way to us */
        return false;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = site_of(address_facts_text(&facts, facts.rows[i].module),
                         address_facts_text(&facts, facts.rows[i].function));
    bool can_read = facts.census.told_by == RESOLVER_MEMORY;
    if (!can_read)
        note_loss(t, &facts.census.memory_error);
    address_facts_done(&facts);
    return can_read;
}
