#include "base/urgency.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

enum { PRIORITY = 1, PRIORITY_WATCH, LOOK_MS = 10 };

struct urgency {
    pid_t tid; /* of who began it */
    DIR *threads;
    uint64_t most_ns; /* CPU time of the process at which it is over */
};

static bool take_policy(pid_t tid, int policy, int priority)
{
    return sched_setscheduler(tid, policy, &(struct sched_param){ .sched_priority = priority }) == 0;
}

static void *watch(void *user)
{
    struct urgency *u = user;
    take_policy(0, SCHED_RR, PRIORITY_WATCH);
    while (clock_own_cpu_ns() < u->most_ns)
        poll(NULL, 0, LOOK_MS);
    take_policy(u->tid, SCHED_OTHER, 0); /* whom it starts now is as everybody; those before are listed */
    for (const struct dirent *one; (one = readdir(u->threads));)
        if (one->d_name[0] != '.')
            take_policy((pid_t)strtol(one->d_name, NULL, 10), SCHED_OTHER, 0);
    closedir(u->threads);
    free(u);
    return NULL;
}

bool urgency_begin(unsigned most_ms)
{
    pthread_t thread;
    if (sched_getscheduler(0) != SCHED_OTHER || !take_policy(0, SCHED_RR, PRIORITY))
        return false;
    struct urgency *u = mem_alloc(1, sizeof *u);
    *u = (struct urgency){ .tid = gettid(),
                           .threads = opendir("/proc/self/task"),
                           .most_ns = clock_own_cpu_ns() + most_ms * UINT64_C(1000000) };
    if (u->threads && thread_start(&thread, watch, u)) {
        pthread_detach(thread);
        return true;
    }
    take_policy(0, SCHED_OTHER, 0);
    if (u->threads)
        closedir(u->threads);
    free(u);
    return false;
}
