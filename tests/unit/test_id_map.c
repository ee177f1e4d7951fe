#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/id_map.h"
#include "trace/chain_cache.h"

enum { KEYS = 5000 };

/* Both tables choose a slot by low bits of a word: what is added to them may all want few neighbouring slots.
 */
struct crowd {
    const char *name;
    uint32_t first, spread; /* words are random, but less than `spread` from `first` on; 0: any */
    uint32_t high_bits;     /* differ, so that growing tells what is crowded apart */
};

static const struct crowd crowds[] = {
    { "anywhere", 0, 0, 0 },
    { "around the end of every size", 0xffffffe0, 64, 0 },
    { "from the beginning on", 0, 16, 0xffff0000 },
    { "at the end of small tables", 60, 8, 0xfffffc00 },
    { "on one slot", 63, 1, 0xffffffc0 },
};

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 32);
}

static uint32_t word_of(const struct crowd *crowd, uint64_t *state)
{
    uint32_t random = next_random(state);
    if (!crowd->spread)
        return random;
    uint32_t low = crowd->first + random % crowd->spread;
    return crowd->high_bits ? (low & ~crowd->high_bits) | (next_random(state) & crowd->high_bits) : low;
}

static bool word_same(const void *table, uint32_t id, const void *key)
{
    (void)table;
    return id == *(const uint32_t *)key;
}

static void check_map(const struct id_map *m, const uint32_t *words, uint32_t count)
{
    for (uint32_t id = 1; id <= count; id++)
        assert_int_equal(id_map_find(m, (uint64_t)words[id] << 32, word_same, NULL, &id), id);
}

/* All that was added is found, however the table grew. */
static void test_grows(void **state)
{
    static uint32_t words[KEYS + 1];
    (void)state;
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds; i++) {
        uint64_t random = i;
        uint32_t keys = crowds[i].spread && !crowds[i].high_bits ? KEYS / 10 : KEYS;
        struct id_map m = { 0 };
        for (uint32_t id = 1; id <= keys; id++) {
            size_t before = m.capacity;
            words[id] = word_of(&crowds[i], &random);
            id_map_add(&m, (uint64_t)words[id] << 32, id);
            if (m.capacity != before)
                check_map(&m, words, id);
        }
        check_map(&m, words, keys);
        id_map_done(&m);
    }
}

static void test_chains_grow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds; i++) {
        uint64_t random = i;
        uint32_t keys = crowds[i].spread && !crowds[i].high_bits ? KEYS / 10 : KEYS;
        struct chain_cache *cache = chain_cache_new(KEYS);
        for (uint32_t id = 1; id <= keys; id++)
            chain_cache_add(cache, (struct chain_key){ word_of(&crowds[i], &random), id }, id);
        random = i;
        for (uint32_t id = 1; id <= keys; id++)
            assert_int_equal(chain_cache_find(cache, (struct chain_key){ word_of(&crowds[i], &random), id }),
                             id);
        assert_int_equal(chain_cache_find(cache, (struct chain_key){ 1, KEYS + 1 }), 0);
        chain_cache_free(cache);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_grows), cmocka_unit_test(test_chains_grow) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
