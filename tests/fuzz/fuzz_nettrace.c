/*
 * Input: an event stream. In one piece or in pieces, and whether its events are looked at or only counted, it
 * must tell the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "read/nettrace.h"

enum { TYPES_MAX = 64, SLICES = 64, SLICE_SHIFT = 12 };

/* What is asked for by the number of a type. */
static const enum nettrace_want wants[] = { NETTRACE_TIME, NETTRACE_EVENT, NETTRACE_COUNT, NETTRACE_SAMPLE };

struct told {
    bool counts; /* types are asked for as `wants` has them; else all events */
    bool ok, ended;
    uint64_t events;         /* of types of which events are wanted: a hash of what they say */
    uint64_t samples;        /* of types of which samples are wanted: likewise */
    uint64_t slices[SLICES]; /* when events of types were of which times are wanted */
    uint64_t owners;         /* of the others: a hash of whose they were, whenever that changed */
    uint64_t losses;
    uint64_t types; /* a hash of what they say in the end */
    struct nettrace_counts sums;
    size_t type_count;
    struct {
        const struct nettrace_type *type;
        uint64_t owner; /* of the latest event */
        bool any;
    } of[TYPES_MAX];
};

static enum nettrace_want want_of(const struct nettrace_type *type)
{
    return wants[type->id % (sizeof wants / sizeof *wants)];
}

static void hash(uint64_t *sum, uint64_t value)
{
    *sum = (*sum ^ value) * 0x9e3779b97f4a7c15;
    *sum ^= *sum >> 29;
}

static void hash_bytes(uint64_t *sum, struct span bytes)
{
    hash(sum, bytes.size);
    for (size_t i = 0; i < bytes.size; i++)
        hash(sum, bytes.data[i]);
}

static bool take_type(void *user, struct nettrace_type *type, struct error *err)
{
    (void)err;
    struct told *told = user;
    type->mark = told->type_count;
    if (told->type_count < TYPES_MAX)
        told->of[told->type_count++].type = type;
    if (told->counts)
        type->wanted = want_of(type);
    return true;
}

static void take_owner(void *user, const struct nettrace_type *type, uint64_t process_id)
{
    struct told *told = user;
    hash(&told->owners, type->id);
    hash(&told->owners, process_id);
}

static void take_times(void *user, const struct nettrace_type *type, uint64_t time_ns, uint64_t count)
{
    (void)type;
    struct told *told = user;
    told->slices[time_ns >> SLICE_SHIFT & (SLICES - 1)] += count;
}

static uint64_t same_until(void *user, uint64_t time_ns)
{
    (void)user;
    return time_ns | ((1u << SLICE_SHIFT) - 1);
}

static void take_sample(void *user, const struct nettrace_sample *sample)
{
    struct told *told = user;
    hash(&told->samples, sample->time_ns);
    hash(&told->samples, sample->process_id);
    hash(&told->samples, sample->thread_id);
    hash_bytes(&told->samples, sample->stack);
    hash_bytes(&told->samples, sample->payload);
}

/* What would be told of an event of a type that is only counted, or of samples. */
static void count_event(struct told *told, const struct nettrace_event *event)
{
    size_t type = event->type->mark;
    if (type < TYPES_MAX && (!told->of[type].any || told->of[type].owner != event->process_id)) {
        take_owner(told, event->type, event->process_id);
        told->of[type].any = true;
        told->of[type].owner = event->process_id;
    }
    if (want_of(event->type) == NETTRACE_TIME)
        take_times(told, event->type, event->time_ns, 1);
    if (want_of(event->type) == NETTRACE_SAMPLE)
        take_sample(told, &(struct nettrace_sample){ event->time_ns, event->process_id, event->thread_id,
                                                     event->stack, event->stack_mark, event->payload });
}

static bool take_event(void *user, const struct nettrace_event *event, struct error *err)
{
    (void)err;
    struct told *told = user;
    if (want_of(event->type) != NETTRACE_EVENT) {
        count_event(told, event);
        return true;
    }
    const uint64_t numbers[] = { event->type->id,          event->time_ns,
                                 event->process_id,        event->thread_id,
                                 event->capture_thread_id, event->sequence,
                                 event->processor,         event->sorted };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash(&told->events, numbers[i]);
    hash_bytes(&told->events, event->payload);
    hash_bytes(&told->events, event->stack);
    hash_bytes(&told->events, event->activity);
    hash_bytes(&told->events, event->related_activity);
    return true;
}

static bool take_loss(void *user, uint64_t capture_thread_id, uint64_t count, struct error *err)
{
    (void)err;
    struct told *told = user;
    hash(&told->losses, capture_thread_id);
    hash(&told->losses, count);
    return true;
}

static bool take_damage(void *user, uint64_t stream_off, uint64_t size_bytes, const struct error *what,
                        struct error *err)
{
    (void)err;
    struct told *told = user;
    hash(&told->losses, stream_off);
    hash(&told->losses, size_bytes);
    hash_bytes(&told->losses, span_of(what->what, strlen(what->what)));
    return true;
}

static void end(struct told *told, const struct nettrace_reader *r)
{
    told->sums = *nettrace_reader_counts(r);
    told->ended = nettrace_reader_ended(r);
    for (size_t i = 0; i < told->type_count; i++) {
        const struct nettrace_type *type = told->of[i].type;
        const uint64_t numbers[] = { type->events, type->events_with_stack, type->payload_bytes,
                                     type->latest_ns };
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            hash(&told->types, numbers[k]);
    }
}

static struct told read_all(const uint8_t *data, size_t size, bool counts, bool tolerates_damage,
                            size_t piece_max)
{
    struct told told = { .counts = counts, .ok = true };
    const struct nettrace_sink sink = { .user = &told,
                                        .on_type = take_type,
                                        .on_event = take_event,
                                        .on_owner = take_owner,
                                        .on_times = take_times,
                                        .on_sample = take_sample,
                                        .same_until = same_until,
                                        .on_loss = take_loss,
                                        .on_damage = tolerates_damage ? take_damage : NULL };
    struct nettrace_reader *r = nettrace_reader_new(&sink);
    for (size_t at = 0, piece; told.ok && at < size; at += piece) {
        piece = size - at < piece_max ? size - at : piece_max;
        told.ok = nettrace_reader_feed(r, span_of(data + at, piece), NULL);
    }
    end(&told, r);
    nettrace_reader_free(r);
    return told;
}

static bool tell_the_same(const struct told *a, const struct told *b)
{
    return a->ok == b->ok && a->ended == b->ended && a->events == b->events && a->samples == b->samples &&
           a->owners == b->owners && a->losses == b->losses && a->types == b->types &&
           memcmp(a->slices, b->slices, sizeof a->slices) == 0 &&
           /* how much was fed before a failure is the caller's business */
           a->sums.events == b->sums.events && a->sums.lost == b->sums.lost &&
           a->sums.untyped == b->sums.untyped && a->sums.stackless == b->sums.stackless &&
           a->sums.time_breaks == b->sums.time_breaks && a->sums.limits == b->sums.limits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned damage = 0; damage < 2; damage++) {
        struct told events = read_all(data, size, false, damage, size);
        struct told in_pieces = read_all(data, size, false, damage, 7);
        struct told counted = read_all(data, size, true, damage, size);
        if (!tell_the_same(&events, &in_pieces) || !tell_the_same(&events, &counted))
            abort();
    }
    return 0;
}
