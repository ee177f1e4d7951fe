#include "collect/traced_thread.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

bool traced_thread_is_stopped(int status, int *out_signal)
{
    if (!WIFSTOPPED(status))
        return false;
    *out_signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    return true;
}

bool traced_thread_wait(pid_t tid, int *out_signal)
{
    int status;
    return waitpid(tid, &status, __WALL) == tid && traced_thread_is_stopped(status, out_signal);
}

void traced_thread_release(pid_t tid, int signal_number)
{
    ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal_number);
}
