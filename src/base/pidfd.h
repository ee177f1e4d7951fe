/*
 * pidfd: a descriptor that stands for one process, whoever has its number later.
 *
 * By system call: musl has no function for it.
 */
#ifndef CLRPERF_BASE_PIDFD_H
#define CLRPERF_BASE_PIDFD_H

#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* -1 with errno; the caller closes it. It is closed on exec. */
static inline int pidfd_of(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}
/* Whether the process has ended. A signal that comes to us meanwhile says nothing of it. */
bool pidfd_has_ended(int pidfd);

#endif
