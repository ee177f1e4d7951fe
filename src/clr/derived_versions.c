#include "clr/derived_versions.h"

#include "clr/layout_poll.h"

enum {
    LEAST = 8,
    FEW_PER_CENT = 1, /* most methods have one version of code only, of which there is no note */
    MOST_PER_CENT = 80,
    DATA_FIRST = 8, /* in a record */
    DATA_PLACES = 2,
    STATE_PLACES = 4,
    FIRST_PLACES = 8,
    CODE_PLACES = 4,
    NEXT_PLACES = 8,
    TIER_PLACES = 16,
    NOTES_MAX = 64, /* of one method */
    TIER_MAX = 5,
    TIER_INSTRUMENTED = 4, /* what the oldest note is of; 5: of what was precompiled */
};

struct search {
    struct memory_pages *pages;
    const struct layout_evidence *evidence;
    struct runtime_layout *layout;
};

static uint64_t pointer(const struct search *s, uint64_t addr)
{
    uint64_t value = addr ? memory_pages_u64(s->pages, addr) : 0;
    return value % 8 == 0 && memory_mapping_at(s->pages->memory, value) ? value : 0;
}

/* Is that code of the method? */
static bool is_code_of(const struct search *s, uint64_t start, uint64_t method)
{
    const struct evident_code *code = layout_evidence_code(s->evidence, start);
    return code && memory_pages_u64(s->pages, code->header + s->layout->header.method) == method;
}

static void ask_for_notes(const struct search *s, uint64_t method, size_t data_places,
                          struct layout_poll *poll)
{
    size_t place = 0;
    bool any = false;
    for (size_t i = 0; i < data_places; i++) {
        uint64_t data = pointer(s, method + DATA_FIRST + 8 * i);
        for (size_t j = 0; j < STATE_PLACES; j++) {
            uint64_t state = data ? pointer(s, data + 8 * j) : 0;
            for (size_t k = 0; k < FIRST_PLACES; k++) {
                uint64_t note = state ? pointer(s, state + 8 * k) : 0;
                for (size_t m = 0; m < CODE_PLACES; m++, place++) {
                    bool there = note && is_code_of(s, memory_pages_u64(s->pages, note + 8 * m), method);
                    poll->votes[place] += there;
                    any |= there;
                }
            }
        }
    }
    poll->asked += any;
}

static bool find_notes(const struct search *s, uint16_t record_size)
{
    const struct layout_evidence *e = s->evidence;
    struct layout_poll poll = { 0 };
    size_t data_places = record_size > DATA_FIRST ? (record_size - DATA_FIRST) / 8u : 0, place;
    for (size_t i = 0; i < e->method_count; i++)
        ask_for_notes(s, e->methods[i].addr, data_places < DATA_PLACES ? data_places : DATA_PLACES, &poll);
    if (!layout_poll_decide(&poll, LEAST, MOST_PER_CENT, &place))
        return false;
    s->layout->version.code = (uint16_t)(8 * (place % CODE_PLACES));
    place /= CODE_PLACES;
    s->layout->version.first = (uint16_t)(8 * (place % FIRST_PLACES));
    place /= FIRST_PLACES;
    s->layout->version.state = (uint16_t)(8 * (place % STATE_PLACES));
    s->layout->method.code_data = (uint16_t)(DATA_FIRST + 8 * (place / STATE_PLACES));
    return true;
}

static uint64_t first_note(const struct search *s, uint64_t method)
{
    uint64_t data = pointer(s, method + s->layout->method.code_data);
    uint64_t state = data ? pointer(s, data + s->layout->version.state) : 0;
    return state ? pointer(s, state + s->layout->version.first) : 0;
}

/* A note leads to the next one of the method. */
static bool find_next(const struct search *s)
{
    const struct layout_evidence *e = s->evidence;
    struct layout_poll poll = { 0 };
    size_t place;
    for (size_t i = 0; i < e->method_count; i++) {
        uint64_t note = first_note(s, e->methods[i].addr);
        bool any = false;
        for (size_t k = 0; note && k < NEXT_PLACES; k++) {
            uint64_t next = pointer(s, note + 8 * k);
            bool there =
                next && next != note &&
                is_code_of(s, memory_pages_u64(s->pages, next + s->layout->version.code), e->methods[i].addr);
            poll.votes[k] += there;
            any |= there;
        }
        poll.asked += any;
    }
    if (!layout_poll_decide(&poll, LEAST, MOST_PER_CENT, &place))
        return false;
    s->layout->version.next = (uint16_t)(8 * place);
    return true;
}

/* Notes hold small numbers: tiers, of which the oldest note's is of code that counts; and ids, which begin
 * at 1. */
static void ask_for_tier(const struct search *s, uint64_t note, struct layout_poll *poll,
                         bool is_tier[TIER_PLACES])
{
    uint32_t tiers[TIER_PLACES] = { 0 };
    for (unsigned i = 0; note && i < NOTES_MAX; i++) {
        for (size_t k = 0; k < TIER_PLACES; k++) {
            tiers[k] = memory_pages_u32(s->pages, note + 4 * k);
            is_tier[k] &= tiers[k] > 0 && tiers[k] <= TIER_MAX;
        }
        note = pointer(s, note + s->layout->version.next);
    }
    for (size_t k = 0; k < TIER_PLACES; k++)
        poll->votes[k] += tiers[k] >= TIER_INSTRUMENTED;
    poll->asked++;
}

static bool find_tier(const struct search *s)
{
    const struct layout_evidence *e = s->evidence;
    struct layout_poll poll = { 0 };
    bool is_tier[TIER_PLACES];
    size_t place;
    for (size_t k = 0; k < TIER_PLACES; k++)
        is_tier[k] = true;
    for (size_t i = 0; i < e->method_count; i++) {
        uint64_t note = first_note(s, e->methods[i].addr);
        if (note)
            ask_for_tier(s, note, &poll, is_tier);
    }
    for (size_t k = 0; k < TIER_PLACES; k++)
        poll.votes[k] = is_tier[k] ? poll.votes[k] : 0;
    if (!layout_poll_decide(&poll, LEAST, FEW_PER_CENT, &place))
        return false;
    s->layout->version.tier = (uint16_t)(4 * place);
    return true;
}

void derive_versions(struct memory_pages *pages, const struct layout_evidence *evidence, uint16_t record_size,
                     struct runtime_layout *layout)
{
    struct runtime_layout found = *layout;
    const struct search s = { pages, evidence, &found };
    if (find_notes(&s, record_size) && find_next(&s) && find_tier(&s))
        *layout = found;
}
