#include "collect/runtime_ending.h"

#include "base/clock.h"

enum {
    WAIT_MS = 50, /* until it is looked again */
    /* for what runtimes have when they are told to end */
    LAST_WORDS_MS = 150,
    LAST_EVENTS_MS = 5000,
    MUTE_MS = 2000, /* who is silent for so long then has nothing, or is stuck */
    /* how long they may take to tell their methods, and how long they may be silent then */
    LISTS_MS = 60000,
    SILENCE_MS = 15000,
    STOPPED_SILENCE_MS = 1000,
    IDLE_TICKS = 5, /* of CPU time in MUTE_MS: who makes a list takes more */
};

#define MS_NS 1000000ull

void runtime_ending_work(struct runtime_ending *e)
{
    e->idle = e->idle || !e->meanwhile || !e->meanwhile(e->user);
}

/* Takes what they send, and uses the time until it comes. Returns whether there was a use for it. */
static bool await(struct runtime_ending *e)
{
    runtime_ending_work(e);
    runtime_names_wait(e->runtimes, e->idle ? WAIT_MS : 0);
    runtime_names_drain(e->runtimes);
    return !e->idle;
}

/* Whether they were silent for so long that nothing more comes; of stopped processes that is known soon. */
static bool all_mute(const struct runtime_ending *e, uint64_t silent_ns, unsigned silence_ms)
{
    return silent_ns >= silence_ms * MS_NS ||
           (silent_ns >= STOPPED_SILENCE_MS * MS_NS && runtime_names_stopped(e->runtimes));
}

void runtime_ending_hear(struct runtime_ending *e)
{
    unsigned patience_ms = e->wants_events ? LAST_EVENTS_MS : LAST_WORDS_MS;
    uint64_t now = clock_monotonic_ns(), end = now + patience_ms * MS_NS, heard = now;
    uint64_t bytes = runtime_names_bytes(e->runtimes);
    while (runtime_names_spares(e->runtimes) && now < end && !all_mute(e, now - heard, MUTE_MS)) {
        bool worked = await(e);
        now = clock_monotonic_ns();
        if (worked) /* our delay is not theirs */
            end = now + patience_ms * MS_NS;
        if (worked || runtime_names_bytes(e->runtimes) != bytes)
            heard = now;
        bytes = runtime_names_bytes(e->runtimes);
    }
    runtime_names_spare_end(e->runtimes);
}

/* Since when they have sent nothing, and have been looked at for whether they make a list. */
struct silence {
    uint64_t heard_ns, looked_ns, ticks, bytes;
};

static void look_at_work(const struct runtime_ending *e, struct silence *s, uint64_t now)
{
    s->looked_ns = now;
    s->ticks = runtime_names_cpu_ticks(e->runtimes);
}

static void hear(const struct runtime_ending *e, struct silence *s, uint64_t now)
{
    s->heard_ns = now;
    s->bytes = runtime_names_bytes(e->runtimes);
    look_at_work(e, s, now);
}

/* A list is made before it is sent. Whether no runtime sends one, nor makes one. */
static bool list_nothing(const struct runtime_ending *e, struct silence *s, uint64_t now)
{
    if (runtime_names_bytes(e->runtimes) != s->bytes)
        hear(e, s, now);
    if (all_mute(e, now - s->heard_ns, SILENCE_MS))
        return true;
    if (now - s->looked_ns < MUTE_MS * MS_NS)
        return false;
    uint64_t before = s->ticks;
    look_at_work(e, s, now);
    return s->ticks - before < IDLE_TICKS;
}

void runtime_ending_await_lists(struct runtime_ending *e)
{
    uint64_t begin = clock_monotonic_ns(), now = begin;
    struct silence silence;
    hear(e, &silence, begin);
    while (runtime_names_running(e->runtimes) && now - begin < LISTS_MS * MS_NS &&
           !list_nothing(e, &silence, now)) {
        bool worked = await(e);
        now = clock_monotonic_ns();
        if (worked) /* our delay is not theirs */
            hear(e, &silence, now);
    }
    runtime_names_give_up(e->runtimes);
}
