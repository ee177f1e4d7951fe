/*
 * child: a process of a test's, that ends with the test at the latest. One that waits for ever would keep the
 * test's output open, and who runs the test waiting for its end, where an assertion fails.
 */
#ifndef CLRPERF_TESTS_CHILD_H
#define CLRPERF_TESTS_CHILD_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

/* As fork(). */
static inline pid_t child_fork(void)
{
    pid_t child = fork();
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

#endif
