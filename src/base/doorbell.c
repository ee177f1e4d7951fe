#include "base/doorbell.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { VAIN_MAX = 6 }; /* of so many one wait in 2^(VAIN_MAX - 1) + 1 looks */

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

unsigned doorbell_look_us(unsigned look_us)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 1 ? look_us : 0;
}

static void wake(struct doorbell *bell)
{
    syscall(SYS_futex, &bell->rung, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool doorbell_ring(struct doorbell *bell)
{
    __atomic_fetch_add(&bell->rung, 1, __ATOMIC_SEQ_CST);
    /* only who waits clears it: a late ring would clear what is said of the next sleep, which nobody ends */
    bool slept = __atomic_load_n(&bell->sleeps, __ATOMIC_SEQ_CST);
    if (slept)
        wake(bell);
    return slept;
}

void doorbell_end(struct doorbell *bell)
{
    __atomic_store_n(&bell->over, true, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&bell->rung, 1, __ATOMIC_SEQ_CST);
    wake(bell);
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

/* Until it rings, or the time is over. */
static void sleep_at(struct doorbell *bell, uint32_t heard, int deadline_ms)
{
    uint64_t now_ns = clock_monotonic_ns(), until_ns = now_ns + (uint64_t)deadline_ms * NS_PER_MS;
    for (; !has_rung(bell, heard) && (deadline_ms < 0 || now_ns < until_ns); now_ns = clock_monotonic_ns()) {
        uint64_t left_ns = until_ns - now_ns;
        struct timespec left = { (time_t)(left_ns / NS_PER_S), (long)(left_ns % NS_PER_S) };
        syscall(SYS_futex, &bell->rung, FUTEX_WAIT, heard, deadline_ms < 0 ? NULL : &left, NULL, 0);
    }
}

bool doorbell_wait(struct doorbell *bell, uint32_t heard, unsigned look_us, int deadline_ms)
{
    if (!look_if_worth_it(bell, heard, look_us)) {
        __atomic_store_n(&bell->sleeps, true, __ATOMIC_SEQ_CST);
        sleep_at(bell, heard, deadline_ms);
        __atomic_store_n(&bell->sleeps, false, __ATOMIC_SEQ_CST);
    }
    return has_rung(bell, heard) && !__atomic_load_n(&bell->over, __ATOMIC_SEQ_CST);
}
