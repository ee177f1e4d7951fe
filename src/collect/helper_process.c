#include "collect/helper_process.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/pidfd.h"
#include "base/thread.h"

enum { STACK_BYTES = 64 << 10, STACK_ALIGN = 16 }; /* of a child that shares our memory */
enum { END_WAIT_MS = 100, END_LOOKS = 100, END_LOOK_NS = 1000000 };

static void close_all_but(int keep)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, keep + 1, UINT_MAX, 0) == 0) {
        if (keep > 0)
            syscall(SYS_close_range, 0, keep - 1, 0);
        return;
    }
#endif
    for (int fd = 0; fd < 4096; fd++)
        if (fd != keep)
            close(fd);
}

void helper_process_begin(int keep)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_all_but(keep);
}

/* A child that shares our memory. */

struct shared_start {
    helper_serve_fn *serve;
    void *user;
    pid_t parent;
    pid_t *out_child;
    sem_t *begun; /* what lies behind `out_child` and this is gone soon after */
};

static int shared_child(void *user)
{
    const struct shared_start *start = user;
    helper_process_begin(-1);
    if (getppid() == start->parent) /* from now on we end with it */
        start->serve(start->user);
    return 0;
}

/*
 * A thread does nothing but lend the child what the C library keeps for each thread, errno above all, until
 * the child has ended.
 */
static void *lend_thread(void *user)
{
    struct shared_start start = *(struct shared_start *)user;
    pid_t child = -1;
    AUTO_FREE uint8_t *stack = aligned_alloc(STACK_ALIGN, STACK_BYTES);
    if (stack)
        child = clone(shared_child, stack + STACK_BYTES, CLONE_VM | SIGCHLD, &start);
    *start.out_child = child;
    sem_post(start.begun);
    while (child > 0 && waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    return NULL;
}

bool helper_process_share(helper_serve_fn *serve, void *user, pid_t *out_child)
{
    sem_t begun;
    pthread_t thread;
    struct shared_start start = { serve, user, getpid(), out_child, &begun };
    sem_init(&begun, 0, 0);
    bool ok = thread_start(&thread, lend_thread, &start);
    if (ok) {
        pthread_detach(thread);
        while (sem_wait(&begun) != 0)
            ;
        ok = *out_child > 0;
    }
    sem_destroy(&begun);
    return ok;
}

static bool reap(pid_t child)
{
    pid_t ended = waitpid(child, NULL, WNOHANG);
    return ended == child || (ended < 0 && errno != EINTR);
}

bool helper_process_end(pid_t child)
{
    kill(child, SIGKILL);
    if (reap(child))
        return true;
    AUTO_FD int pidfd = pidfd_of(child);
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    if (pidfd >= 0 && poll(&end, 1, END_WAIT_MS) >= 0)
        return reap(child);
    bool gone = false;
    for (int i = 0; i < END_LOOKS && !(gone = reap(child)); i++)
        nanosleep(&(struct timespec){ .tv_nsec = END_LOOK_NS }, NULL);
    return gone;
}
