#include "read/nettrace_tally.h"

#include "read/nettrace_contents.h"
#include "read/nettrace_info.h"

static bool begin(struct nettrace_contents *r, const struct nettrace_block *b)
{
    const struct nettrace_record *latest = &b->record;
    if (latest->ticks < b->min_ticks || latest->ticks > b->max_ticks ||
        !nettrace_threads_latest_is(&r->threads, latest->capture_thread_id, latest->sequence, latest->ticks))
        return false;
    r->tally.process_id = nettrace_contents_process(r, latest->thread_id);
    r->tally.last_ticks = b->max_ticks;
    r->tally.count = 0;
    return true;
}

/* The last ticks whose time need not be told apart from that of `ticks`. */
static uint64_t same_until(const struct nettrace_contents *r, uint64_t ticks)
{
    if (!r->sink.same_until)
        return ticks;
    uint64_t last_ns = r->sink.same_until(r->sink.user, nettrace_info_ns(&r->info, ticks));
    uint64_t last = nettrace_info_last_ticks(&r->info, last_ns);
    return last > ticks ? last : ticks;
}

/* The first of a run's events of a type. False where its events are wanted, or its owner has to be told. */
__attribute__((noinline)) static bool admit(struct nettrace_contents *r, struct nettrace_type *type,
                                            uint64_t ticks)
{
    struct nettrace_tally *t = &r->tally;
    if (t->count == NETTRACE_TALLY_TYPES_MAX || type->wanted == NETTRACE_EVENT || !type->events ||
        type->owner != t->process_id)
        return false;
    if (type->wanted == NETTRACE_SAMPLE && (r->info.version >= 6 || !r->sink.on_sample))
        return false; /* there the list of threads has to be asked */
    if (type->wanted == NETTRACE_TIME) {
        uint64_t last = same_until(r, ticks);
        t->last_ticks = last < t->last_ticks ? last : t->last_ticks;
    }
    t->types[t->count++] = type;
    return true;
}

/* The type, if its events are counted; `ticks`: not later than the event's. */
static inline __attribute__((always_inline)) struct nettrace_type *take_type(struct nettrace_contents *r,
                                                                             uint32_t id, uint64_t ticks)
{
    struct nettrace_type *type = nettrace_types_find(&r->types, id);
    return type && (type->fresh || admit(r, type, ticks)) ? type : NULL;
}

/* Returns how many events they were. */
static uint32_t tell(struct nettrace_contents *r, struct nettrace_type *type)
{
    uint64_t time_ns = nettrace_info_ns(&r->info, type->fresh_ticks);
    uint32_t count = type->fresh;
    if (count == 0)
        return 0; /* the run ended before the first */
    type->events += count;
    type->events_with_stack += count - type->fresh_stackless;
    if (time_ns > type->latest_ns)
        type->latest_ns = time_ns;
    if (type->wanted == NETTRACE_TIME)
        r->sink.on_times(r->sink.user, type, time_ns, count);
    type->fresh = type->fresh_stackless = 0;
    return count;
}

static void end(struct nettrace_contents *r, struct nettrace_block *b)
{
    uint32_t count = 0;
    for (size_t i = 0; i < r->tally.count; i++)
        count += tell(r, r->tally.types[i]);
    r->counts.events += count;
    nettrace_threads_passed(&r->threads, count, b->record.ticks);
    b->record.sequence += count;
    b->record.changed = NETTRACE_ALL_CHANGED;
}

static inline void tell_sample(const struct nettrace_contents *r, const struct nettrace_record *now,
                               const uint8_t *payload)
{
    struct nettrace_stack *stack = nettrace_stacks_at(&r->stacks, now->stack_id);
    struct nettrace_sample sample = {
        .time_ns = nettrace_info_ns(&r->info, now->ticks),
        .process_id = r->tally.process_id,
        .thread_id = now->thread_id,
        .stack = nettrace_stacks_addresses(&r->stacks, stack),
        .stack_mark = stack ? &stack->mark : NULL,
        .payload = { payload, now->payload.size },
    };
    r->sink.on_sample(r->sink.user, &sample);
}

/* What the last head said anew, if it was not counted, it will say again. */
static inline void leave(struct nettrace_block *b, const uint8_t *at, const struct nettrace_record *now)
{
    b->at = at;
    b->record.type_id = now->type_id;
    b->record.thread_id = now->thread_id;
    b->record.stack_id = now->stack_id;
    b->record.label_id = now->label_id;
    b->record.activity = now->activity;
    b->record.related_activity = now->related_activity;
    b->record.payload.size = now->payload.size;
    b->record.ticks = now->ticks;
}

/* What it works on is given to nobody else: that stays in registers. */
struct run {
    struct nettrace_record now;
    struct nettrace_type *type;
    enum nettrace_stack_kind stack;
    const uint8_t *at, *last; /* of the next head; where a head may begin at the latest */
    bool is_v6;
};

static inline __attribute__((always_inline)) void count_event(struct nettrace_contents *r, struct run *run,
                                                              const uint8_t *payload)
{
    struct nettrace_type *type = run->type;
    if (type->wanted == NETTRACE_SAMPLE)
        tell_sample(r, &run->now, payload);
    type->fresh++;
    type->fresh_stackless += run->stack == NETTRACE_STACK_EMPTY;
    type->fresh_ticks = run->now.ticks;
    type->payload_bytes += run->now.payload.size;
}

/* What a head with these flags says anew; false where it is nothing to be counted. */
static inline __attribute__((always_inline)) bool look_up(struct nettrace_contents *r, struct run *run,
                                                          uint8_t flags)
{
    struct nettrace_record *now = &run->now;
    if (flags & NETTRACE_HAS_STACK)
        run->stack = nettrace_stacks_kind(&r->stacks, now->stack_id);
    if (flags & NETTRACE_HAS_TYPE)
        run->type = take_type(r, now->type_id, now->ticks);
    if (run->is_v6 && flags & NETTRACE_HAS_THREAD &&
        nettrace_contents_process(r, now->thread_id) != r->tally.process_id)
        return false;
    if (flags & NETTRACE_HAS_TYPE && !run->type)
        return false;
    return !(flags & NETTRACE_HAS_STACK) || run->stack != NETTRACE_STACK_UNKNOWN;
}

/* Counts the next event, whose head has these flags. False when it is to be left. What its head does not say
 * is not looked up again. `usual`: the flags are constant, and the head is tried as most are. */
static inline __attribute__((always_inline)) bool step(struct nettrace_contents *r, struct run *run,
                                                       uint8_t flags, bool usual)
{
    struct nettrace_record *now = &run->now;
    struct nettrace_head head;
    if (!usual || !nettrace_head_usual(now, flags, run->at, &head))
        head = nettrace_head_read(now, flags, run->at + 1, run->is_v6);
    if (!head.payload)
        return false;
    const uint8_t *next = head.payload + now->payload.size;
    if (next > run->last || !look_up(r, run, flags) || head.ticks > r->tally.last_ticks - now->ticks)
        return false;
    now->ticks += head.ticks;
    run->at = next;
    count_event(r, run, head.payload);
    return true;
}

/*
 * The last records of a block are left: behind each that is counted there is room for a head. So is what
 * another writer wrote, or the same one at another attempt: that tells its number.
 */
static inline __attribute__((always_inline)) void count_run(struct nettrace_contents *r,
                                                            struct nettrace_block *b, bool is_v6)
{
    struct run run = {
        .now = b->record,
        .type = take_type(r, b->record.type_id, b->record.ticks),
        .stack = nettrace_stacks_kind(&r->stacks, b->record.stack_id),
        .at = b->at,
        .last = b->end - NETTRACE_HEADER_ROOM,
        .is_v6 = is_v6,
    };
    bool more = run.type && run.stack != NETTRACE_STACK_UNKNOWN;
    while (more) {
        uint8_t flags = *run.at;
        switch (flags) {
#define USUAL(flags)                                                                                         \
    case flags:                                                                                              \
        more = step(r, &run, flags, true);                                                                   \
        break;
            NETTRACE_USUAL_FLAGS(USUAL)
#undef USUAL
        default:
            flags &= (uint8_t)~NETTRACE_HAS_SEQUENCE;
            more = flags == *run.at && step(r, &run, flags, false);
        }
    }
    leave(b, run.at, &run.now);
}

__attribute__((noinline)) static void count_v4(struct nettrace_contents *r, struct nettrace_block *b)
{
    count_run(r, b, false);
}

__attribute__((noinline)) static void count_v6(struct nettrace_contents *r, struct nettrace_block *b)
{
    count_run(r, b, true);
}

void nettrace_tally_run(struct nettrace_contents *r, struct nettrace_block *b)
{
    if (b->end - b->at < NETTRACE_HEADER_ROOM || !begin(r, b))
        return;
    if (b->version >= 6)
        count_v6(r, b);
    else
        count_v4(r, b);
    end(r, b);
}
