#include "collect/stack_room.h"

#include <unistd.h>

#include "unwind/unwinder.h"

enum {
    STACK_BYTES = 32 << 10, /* what a sample carries: most need less */
    /*
     * The most it can carry, where the ring has plenty of room: asynchronous methods that end each other,
     * compilers and start-up go deep. Stacks that need still more go on by the kernel's chain.
     */
    DEEP_STACK_BYTES = (64 << 10) - 8,
    STACK_BYTES_MIN = 1 << 10,
    SWITCH_STACK_BYTES = 16 << 10, /* of those who wait, where rings are small: most have less */
    SWITCH_STACK_ROOM =
        256,      /* how many samples at switches a ring holds, if they are to carry as much as others */
    HOLD_MS = 80, /* of samples that a ring can hold, at least: it is read when it is half full */
    HOLD_DEEP_MS = 160, /* if they carry the most */
    /*
     * As it should be while images and runtimes are looked at for the first time; and so that none of the
     * deepest is half full before it would be read anyway, which is every 200 ms.
     */
    HOLD_WELL_MS = 800,
    RING_PAGES_MAX = 1024,
    RING_PAGES_DEEP = 4096, /* where those are not enough for DEEP_STACK_BYTES */
    RINGS_BYTES = 64 << 20, /* of all CPUs */
    CHAIN_RING_BYTES = 192, /* for each Hz: it is half full later than it would be read anyway */
    SWITCH_RING_FACTOR = 4, /* switches come in bursts of tens of thousands a second */
};

/* How many bytes of stack a sample can carry, at most `most`, so that a ring holds those of `hold_ms`. */
static uint32_t stack_bytes_for(size_t ring_bytes, uint32_t rate_hz, unsigned hold_ms, uint32_t most)
{
    uint64_t room = (uint64_t)ring_bytes * 1000 / hold_ms / rate_hz;
    if (room > most)
        return most;
    return room > STACK_BYTES_MIN ? (uint32_t)room / 8 * 8 : STACK_BYTES_MIN;
}

static uint32_t user_stack_bytes_for(size_t ring_bytes, uint32_t rate_hz)
{
    uint32_t usual = stack_bytes_for(ring_bytes, rate_hz, HOLD_MS, STACK_BYTES);
    uint32_t deep = stack_bytes_for(ring_bytes, rate_hz, HOLD_DEEP_MS, DEEP_STACK_BYTES);
    return deep > usual ? deep : usual;
}

/* Whether a ring holds what it should of samples, each as large as they should be. */
static bool is_large_enough(size_t ring_bytes, const struct perf_events_options *wanted)
{
    return user_stack_bytes_for(ring_bytes, wanted->rate_hz) == DEEP_STACK_BYTES &&
           stack_bytes_for(ring_bytes, wanted->rate_hz, HOLD_WELL_MS, STACK_BYTES) == STACK_BYTES;
}

static size_t most_pages(uint32_t rate_hz, size_t page_bytes)
{
    bool is_usual = user_stack_bytes_for(RING_PAGES_MAX * page_bytes, rate_hz) == DEEP_STACK_BYTES;
    return is_usual ? RING_PAGES_MAX : RING_PAGES_DEEP;
}

static size_t ring_pages_for(const struct perf_events_options *wanted, size_t page_bytes)
{
    size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN), pages = wanted->ring_pages;
    size_t factor = wanted->context_switches ? SWITCH_RING_FACTOR : 1;
    size_t most = factor * RINGS_BYTES / page_bytes / (cpus ? cpus : 1);
    size_t most_each =
        wanted->context_switches ? factor * RING_PAGES_MAX : most_pages(wanted->rate_hz, page_bytes);
    if (most > most_each)
        most = most_each;
    while (2 * pages <= most && (wanted->context_switches || !is_large_enough(pages * page_bytes, wanted)))
        pages *= 2;
    return pages;
}

/* Those that wait in the compiler, or while an exception is on its way, have more than SWITCH_STACK_BYTES. */
static uint32_t switch_stack_bytes_for(size_t ring_bytes)
{
    return ring_bytes / SWITCH_STACK_ROOM >= STACK_BYTES ? STACK_BYTES : SWITCH_STACK_BYTES;
}

bool stack_room_open_chains(const struct perf_events_options *wanted, struct perf_events *out,
                            struct error *err)
{
    struct perf_events_options perf = *wanted;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    while (perf.ring_pages < RING_PAGES_MAX &&
           perf.ring_pages * page_bytes < (size_t)perf.rate_hz * CHAIN_RING_BYTES)
        perf.ring_pages *= 2;
    return perf_events_open(&perf, out, err);
}

bool stack_room_open(const struct perf_events_options *wanted, struct perf_events *out, struct error *err)
{
    struct perf_events_options perf = *wanted;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    perf.ring_pages = ring_pages_for(wanted, page_bytes);
    perf.user_registers = machine_own()->perf_mask;
    perf.switch_stack_bytes = switch_stack_bytes_for(perf.ring_pages * page_bytes);
    perf.user_stack_bytes = user_stack_bytes_for(perf.ring_pages * page_bytes, perf.rate_hz);
    if (!perf_events_open(&perf, out, err))
        return false;
    size_t granted = out->ring_bytes;
    uint32_t fits = user_stack_bytes_for(granted, perf.rate_hz);
    uint32_t switch_fits = switch_stack_bytes_for(granted);
    if (fits >= perf.user_stack_bytes && switch_fits >= perf.switch_stack_bytes)
        return true;
    perf.ring_pages = granted / page_bytes;
    perf.user_stack_bytes = fits;
    perf.switch_stack_bytes = switch_fits;
    perf_events_close(out);
    return perf_events_open(&perf, out, err);
}
