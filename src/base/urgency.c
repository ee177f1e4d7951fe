#include "base/urgency.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

enum { PRIORITY = 1, PRIORITY_WATCH, LOOK_MS = 10 };

struct urgency {
    pthread_t watch;
    pid_t tid; /* of who began it */
    DIR *threads;
    int over_fd;      /* readable when it is over */
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
    struct pollfd over = { .fd = u->over_fd, .events = POLLIN };
    while (clock_own_cpu_ns() < u->most_ns && poll(&over, 1, LOOK_MS) == 0)
        ;
    take_policy(u->tid, SCHED_OTHER, 0); /* whom it starts now is as everybody; those before are listed */
    for (const struct dirent *one; (one = readdir(u->threads));)
        if (one->d_name[0] != '.')
            take_policy((pid_t)strtol(one->d_name, NULL, 10), SCHED_OTHER, 0);
    return NULL;
}

static void urgency_free(struct urgency *u)
{
    if (u->threads)
        closedir(u->threads);
    if (u->over_fd >= 0)
        close(u->over_fd);
    free(u);
}

struct urgency *urgency_begin(unsigned most_ms)
{
    if (sched_getscheduler(0) != SCHED_OTHER || !take_policy(0, SCHED_RR, PRIORITY))
        return NULL;
    struct urgency *u = mem_alloc(1, sizeof *u);
    *u = (struct urgency){ .tid = gettid(),
                           .threads = opendir("/proc/self/task"),
                           .over_fd = eventfd(0, EFD_CLOEXEC),
                           .most_ns = clock_own_cpu_ns() + most_ms * UINT64_C(1000000) };
    if (u->threads && u->over_fd >= 0 && thread_start(&u->watch, watch, u))
        return u;
    take_policy(0, SCHED_OTHER, 0);
    urgency_free(u);
    return NULL;
}

void urgency_end(struct urgency *u)
{
    if (!u)
        return;
    eventfd_write(u->over_fd, 1);
    pthread_join(u->watch, NULL);
    urgency_free(u);
}
