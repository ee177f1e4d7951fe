#include "base/cpu_lease.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#ifndef sigev_notify_thread_id /* glibc before 2.37 has no name for it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Only who may do more than have a real-time policy (RLIMIT_RTPRIO) may take back what keeps it from
 * children. */
enum {
    PRIORITY = 1,
    WORTH_MS = 5,
    URGENT = SCHED_RR | SCHED_RESET_ON_FORK,
    AS_EVERYBODY = SCHED_OTHER | SCHED_RESET_ON_FORK,
};

#define MS_NS UINT64_C(1000000)

struct cpu_lease {
    timer_t timer;
    uint64_t most_ns, left_ns;
    unsigned percent;
    uint64_t seen_ns, used_ns; /* time, and CPU time of the thread, of the last renewal */
};

static bool take_policy(int policy, int priority)
{
    return sched_setscheduler(0, policy, &(struct sched_param){ .sched_priority = priority }) == 0;
}

/* A call that a signal may be in the midst of. */
static void used_up(int signal)
{
    (void)signal;
    take_policy(AS_EVERYBODY, 0);
}

static void take_back(void)
{
    if (!take_policy(SCHED_OTHER, 0))
        take_policy(AS_EVERYBODY, 0);
}

static int signal_of_lease(void)
{
    return SIGRTMIN + 4;
}

static bool timer_begin(timer_t *out)
{
    struct sigaction action = { .sa_handler = used_up, .sa_flags = SA_RESTART };
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal_of_lease() };
    event.sigev_notify_thread_id = gettid();
    return sigaction(signal_of_lease(), &action, NULL) == 0 &&
           timer_create(CLOCK_THREAD_CPUTIME_ID, &event, out) == 0;
}

/* Urgent for `left_ns` from now on, or not at all when that is not worth it. */
static void go_on(struct cpu_lease *lease)
{
    bool urgent = lease->left_ns >= WORTH_MS * MS_NS;
    uint64_t left_ns = urgent ? lease->left_ns : 0;
    struct itimerspec when = { .it_value = { .tv_sec = (time_t)(left_ns / (1000 * MS_NS)),
                                             .tv_nsec = (long)(left_ns % (1000 * MS_NS)) } };
    timer_settime(lease->timer, 0, &when, NULL);
    int policy = urgent ? URGENT : AS_EVERYBODY;
    if (sched_getscheduler(0) != policy)
        take_policy(policy, urgent ? PRIORITY : 0);
}

struct cpu_lease *cpu_lease_begin(unsigned most_ms, unsigned percent)
{
    timer_t timer;
    if (sched_getscheduler(0) != SCHED_OTHER || !take_policy(URGENT, PRIORITY))
        return NULL;
    if (!timer_begin(&timer)) {
        take_back();
        return NULL;
    }
    struct cpu_lease *lease = mem_alloc(1, sizeof *lease);
    *lease = (struct cpu_lease){ .timer = timer,
                                 .most_ns = most_ms * MS_NS,
                                 .left_ns = most_ms * MS_NS,
                                 .percent = percent,
                                 .seen_ns = clock_monotonic_ns(),
                                 .used_ns = clock_thread_cpu_ns() };
    go_on(lease);
    return lease;
}

void cpu_lease_renew(struct cpu_lease *lease)
{
    if (!lease)
        return;
    uint64_t now_ns = clock_monotonic_ns(), cpu_ns = clock_thread_cpu_ns(), used_ns = cpu_ns - lease->used_ns;
    lease->left_ns -= used_ns < lease->left_ns ? used_ns : lease->left_ns;
    lease->left_ns += (now_ns - lease->seen_ns) / 100 * lease->percent;
    if (lease->left_ns > lease->most_ns)
        lease->left_ns = lease->most_ns;
    lease->seen_ns = now_ns;
    lease->used_ns = cpu_ns;
    go_on(lease);
}

void cpu_lease_end(struct cpu_lease *lease)
{
    if (!lease)
        return;
    timer_delete(lease->timer);
    take_back();
    free(lease);
}
