#include "base/doorbell.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { VAIN_MAX = 6 }; /* of so many one wait in 2^(VAIN_MAX - 1) + 1 looks */

unsigned doorbell_look_us(unsigned look_us)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 1 ? look_us : 0;
}

bool doorbell_ring(struct doorbell *bell, int socket, bool *out_woke)
{
    uint8_t byte = 0;
    __atomic_fetch_add(&bell->rung, 1, __ATOMIC_SEQ_CST);
    bool slept = __atomic_exchange_n(&bell->sleeps, false, __ATOMIC_SEQ_CST);
    if (out_woke)
        *out_woke = slept;
    return !slept || send(socket, &byte, 1, MSG_NOSIGNAL) == 1;
}

static bool has_rung(const struct doorbell *bell, uint32_t heard)
{
    return __atomic_load_n(&bell->rung, __ATOMIC_SEQ_CST) != heard;
}

static bool look(const struct doorbell *bell, uint32_t heard, unsigned look_us)
{
    uint64_t until_ns = clock_monotonic_ns() + look_us * UINT64_C(1000);
    do
        if (has_rung(bell, heard))
            return true;
    while (clock_monotonic_ns() < until_ns);
    return false;
}

/* Looks, unless that was in vain lately: the first time is a coincidence. */
static bool look_if_worth_it(struct doorbell *bell, uint32_t heard, unsigned look_us)
{
    if (has_rung(bell, heard))
        return true;
    if (!look_us || bell->spare) {
        bell->spare -= bell->spare > 0;
        return false;
    }
    bool saw = look(bell, heard, look_us);
    bell->vain = saw ? 0 : bell->vain + (bell->vain < VAIN_MAX);
    bell->spare = bell->vain > 1 ? 1 << (bell->vain - 1) : 0;
    return saw;
}

static bool sleep_at(int socket, int deadline_ms)
{
    uint8_t byte;
    struct pollfd end = { .fd = socket, .events = POLLIN };
    int ready;
    do
        ready = poll(&end, 1, deadline_ms);
    while (ready < 0 && errno == EINTR);
    return ready > 0 && read(socket, &byte, 1) == 1;
}

bool doorbell_wait(struct doorbell *bell, uint32_t heard, int socket, unsigned look_us, int deadline_ms)
{
    if (look_if_worth_it(bell, heard, look_us))
        return true;
    __atomic_store_n(&bell->sleeps, true, __ATOMIC_SEQ_CST);
    /* rung meanwhile: by who saw that we sleep, whose byte is on its way, or did not */
    if (has_rung(bell, heard) && __atomic_exchange_n(&bell->sleeps, false, __ATOMIC_SEQ_CST))
        return true;
    return sleep_at(socket, deadline_ms) && has_rung(bell, heard);
}
