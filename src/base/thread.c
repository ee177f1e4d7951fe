#include "base/thread.h"

#include <sched.h>
#include <signal.h>

/* The CPUs of the process, since a thread keeps to one of them. */
static struct {
    bool known;
    cpu_set_t set;
} all_cpus;

bool thread_keep_cpu(pid_t helper)
{
    cpu_set_t all, one;
    int cpu = sched_getcpu();
    if (cpu < 0 || sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) == 1)
        return false;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(helper, sizeof one, &one) != 0 || sched_setaffinity(0, sizeof one, &one) != 0)
        return false;
    all_cpus.set = all;
    all_cpus.known = true;
    return true;
}

bool thread_start(pthread_t *out, void *(*run)(void *user), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (all_cpus.known)
        pthread_attr_setaffinity_np(&attr, sizeof all_cpus.set, &all_cpus.set);
    bool ok = pthread_create(out, &attr, run, user) == 0;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}
