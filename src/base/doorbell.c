#include "base/doorbell.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

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
    uint64_t until_ns = look_us ? clock_monotonic_ns() + look_us * UINT64_C(1000) : 0;
    do
        if (has_rung(bell, heard))
            return true;
    while (look_us && clock_monotonic_ns() < until_ns);
    return false;
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
    if (look(bell, heard, look_us))
        return true;
    __atomic_store_n(&bell->sleeps, true, __ATOMIC_SEQ_CST);
    /* rung meanwhile: by who saw that we sleep, whose byte is on its way, or did not */
    if (has_rung(bell, heard) && __atomic_exchange_n(&bell->sleeps, false, __ATOMIC_SEQ_CST))
        return true;
    return sleep_at(socket, deadline_ms) && has_rung(bell, heard);
}
