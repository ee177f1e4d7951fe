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

/* The first fresh event of a type. False where its events are wanted, or its owner has to be told. */
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
    t->types[t->count++] = type;
    return true;
}

/* Returns how many events they were. */
static uint32_t tell(struct nettrace_contents *r, struct nettrace_type *type)
{
    uint64_t time_ns = nettrace_info_ns(&r->info, type->fresh_ticks);
    uint32_t count = type->fresh;
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
                               struct nettrace_stack *stack, const uint8_t *payload)
{
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

/* Not inline, and what it works on is given to nobody else: that stays in registers. */
__attribute__((noinline)) static void count_run(struct nettrace_contents *r, struct nettrace_block *b)
{
    struct nettrace_record now = b->record;
    const uint8_t *at = b->at;
    bool is_v6 = b->version >= 6;
    /* another writer, or another attempt of the same one, tells its number */
    while (b->end - at >= NETTRACE_HEADER_ROOM && !(*at & NETTRACE_HAS_SEQUENCE)) {
        uint8_t flags = *at & (uint8_t)~NETTRACE_HAS_SEQUENCE; /* it is told that there is none */
        struct nettrace_head head = nettrace_head_read(&now, flags, at + 1, is_v6);
        if (!head.payload || now.payload.size > (size_t)(b->end - head.payload) ||
            head.ticks > r->tally.last_ticks - now.ticks)
            break;
        if (is_v6 && flags & NETTRACE_HAS_THREAD &&
            nettrace_contents_process(r, now.thread_id) != r->tally.process_id)
            break;
        /* also where they are the same as before: whether they are is not to be foreseen */
        struct nettrace_type *type = nettrace_types_find(&r->types, now.type_id);
        struct nettrace_stack *stack = nettrace_stacks_at(&r->stacks, now.stack_id);
        if (!type || (!stack && now.stack_id) || (!type->fresh && !admit(r, type, now.ticks + head.ticks)))
            break;
        now.ticks += head.ticks;
        if (type->wanted == NETTRACE_SAMPLE)
            tell_sample(r, &now, stack, head.payload);
        at = head.payload + now.payload.size;
        type->fresh++;
        type->fresh_stackless += !stack || !stack->size;
        type->fresh_ticks = now.ticks;
        type->payload_bytes += now.payload.size;
    }
    /* what the last head said anew, if it was not counted, it will say again */
    b->at = at;
    b->record.type_id = now.type_id;
    b->record.thread_id = now.thread_id;
    b->record.stack_id = now.stack_id;
    b->record.label_id = now.label_id;
    b->record.activity = now.activity;
    b->record.related_activity = now.related_activity;
    b->record.payload.size = now.payload.size;
    b->record.ticks = now.ticks;
}

void nettrace_tally_run(struct nettrace_contents *r, struct nettrace_block *b)
{
    if (!begin(r, b))
        return;
    count_run(r, b);
    end(r, b);
}
