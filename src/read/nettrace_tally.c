#include "read/nettrace_tally.h"

#include "read/nettrace_contents.h"
#include "read/nettrace_info.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Of one run and of one step: their sum does not wrap. */
#define TICKS_MAX (UINT64_MAX / 2)

/* What is done with events of a type, in the run that goes on. */
enum nettrace_tallied { TALLIED_NOT, TALLIED_AS_COUNT, TALLIED_AS_SAMPLES };

static bool begin(struct nettrace_contents *r, const struct nettrace_block *b)
{
    const struct nettrace_record *latest = &b->record;
    if (latest->ticks < b->min_ticks || latest->ticks > b->max_ticks || latest->ticks > TICKS_MAX ||
        !nettrace_threads_latest_is(&r->threads, latest->capture_thread_id, latest->sequence, latest->ticks))
        return false;
    r->tally.process_id = nettrace_contents_process(r, latest->thread_id);
    r->tally.last_ticks = b->max_ticks < TICKS_MAX ? b->max_ticks : TICKS_MAX;
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
static bool admit(struct nettrace_contents *r, struct nettrace_type *type, uint64_t ticks)
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
    type->tallied = type->wanted == NETTRACE_SAMPLE ? TALLIED_AS_SAMPLES : TALLIED_AS_COUNT;
    t->types[t->count++] = type;
    return true;
}

/* Returns how many events they were. */
static uint32_t tell(struct nettrace_contents *r, struct nettrace_type *type)
{
    uint64_t time_ns = nettrace_info_ns(&r->info, type->fresh_ticks);
    uint32_t count = type->fresh;
    type->tallied = TALLIED_NOT;
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

/* Reads the next head, which has these flags, and looks up what it says anew. False: it is to be left. */
static ALWAYS_INLINE bool read_head(struct nettrace_contents *r, struct run *run, uint8_t flags,
                                    struct nettrace_head *out)
{
    struct nettrace_record *now = &run->now;
    *out = nettrace_head_read(now, flags, run->at + 1, run->is_v6);
    if (!out->payload || out->ticks > TICKS_MAX)
        return false;
    if (flags & NETTRACE_HAS_TYPE)
        run->type = nettrace_types_at(&r->types, now->type_id);
    if (flags & NETTRACE_HAS_STACK)
        run->stack = nettrace_stacks_kind(&r->stacks, now->stack_id);
    return true;
}

/* The same of a head as most are, with the flags known when this is compiled. False: it is another one. */
static ALWAYS_INLINE bool read_usual_head(struct nettrace_contents *r, struct run *run, uint8_t flags,
                                          struct nettrace_head *out)
{
    struct nettrace_record *now = &run->now;
    if (!nettrace_head_usual(now, flags, run->at, out))
        return false;
    if (flags & NETTRACE_HAS_TYPE)
        run->type = r->types.by_id[now->type_id];
    if (flags & NETTRACE_HAS_STACK)
        run->stack = r->stacks.kinds[now->stack_id];
    return true;
}

/* Whether an event is to be counted. */
static ALWAYS_INLINE bool take(struct nettrace_contents *r, struct run *run, uint8_t flags, uint64_t ticks)
{
    struct nettrace_record *now = &run->now;
    if (flags & NETTRACE_HAS_STACK && run->stack == NETTRACE_STACK_UNKNOWN)
        return false;
    if (run->is_v6 && flags & NETTRACE_HAS_THREAD &&
        nettrace_contents_process(r, now->thread_id) != r->tally.process_id)
        return false;
    if (run->type->tallied == TALLIED_NOT && !admit(r, run->type, ticks))
        return false;
    return ticks <= r->tally.last_ticks;
}

/* Counts the next event. False when it is to be left. What its head does not say is not looked up again. */
static ALWAYS_INLINE bool step(struct nettrace_contents *r, struct run *run, uint8_t flags, bool usual)
{
    struct nettrace_record *now = &run->now;
    struct nettrace_head head;
    if (!(usual && read_usual_head(r, run, flags, &head)) && !read_head(r, run, flags, &head))
        return false;
    const uint8_t *next = head.payload + now->payload.size;
    uint64_t ticks = now->ticks + head.ticks;
    if (next > run->last || !take(r, run, flags, ticks))
        return false;
    struct nettrace_type *type = run->type;
    run->at = next;
    now->ticks = ticks;
    if (type->tallied != TALLIED_AS_COUNT)
        tell_sample(r, now, head.payload);
    type->fresh++;
    type->fresh_stackless += run->stack;
    type->fresh_ticks = ticks;
    type->payload_bytes += now->payload.size;
    return true;
}

/*
 * Behind each that is counted there is room for a head. What another writer wrote is left, or the same one at
 * another attempt: that tells its number.
 */
static ALWAYS_INLINE void count_run(struct nettrace_contents *r, struct nettrace_block *b, bool is_v6)
{
    struct run run = {
        .now = b->record,
        .type = nettrace_types_at(&r->types, b->record.type_id),
        .stack = nettrace_stacks_kind(&r->stacks, b->record.stack_id),
        .at = b->at,
        .last = b->end - NETTRACE_HEADER_ROOM,
        .is_v6 = is_v6,
    };
    bool more = run.stack != NETTRACE_STACK_UNKNOWN;
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

static void count(struct nettrace_contents *r, struct nettrace_block *b)
{
    if (b->version >= 6)
        count_v6(r, b);
    else
        count_v4(r, b);
}

/* The last records of a block, of which no head has as much room as it may need. */
static void count_rest(struct nettrace_contents *r, struct nettrace_block *b)
{
    struct nettrace_rest rest;
    struct nettrace_block copy = *b;
    const uint8_t *start = nettrace_block_rest(b, &rest);
    copy.at = start;
    copy.end = start + (b->end - b->at) + NETTRACE_HEADER_ROOM;
    count(r, &copy);
    nettrace_rest_leave(&rest, start, b->at, &copy.record);
    b->at += copy.at - start;
    b->record = copy.record;
}

void nettrace_tally_run(struct nettrace_contents *r, struct nettrace_block *b)
{
    if (!begin(r, b))
        return;
    if (b->end - b->at >= NETTRACE_HEADER_ROOM)
        count(r, b);
    if (b->end - b->at < NETTRACE_HEADER_ROOM && b->at < b->end)
        count_rest(r, b);
    end(r, b);
}
