#include "collect/helper_process.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

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

static bool reap(pid_t child)
{
    pid_t ended = waitpid(child, NULL, WNOHANG);
    return ended == child || (ended < 0 && errno != EINTR);
}

void helper_process_end(pid_t child)
{
    kill(child, SIGKILL);
    if (reap(child))
        return;
    AUTO_FD int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    if (pidfd >= 0 && poll(&end, 1, END_WAIT_MS) >= 0) {
        reap(child);
        return;
    }
    for (int i = 0; i < END_LOOKS && !reap(child); i++)
        nanosleep(&(struct timespec){ .tv_nsec = END_LOOK_NS }, NULL);
}
