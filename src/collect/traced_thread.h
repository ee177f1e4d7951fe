/*
 * traced_thread: what whoever stops threads by ptrace must do alike.
 */
#ifndef CLRPERF_COLLECT_TRACED_THREAD_H
#define CLRPERF_COLLECT_TRACED_THREAD_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether a thread that was seized and interrupted stands still, by what waitpid(2) says of it. A signal that
 * came in between is in *out_signal, else 0: it must be handed on. False: it is gone.
 */
bool traced_thread_is_stopped(int status, int *out_signal);
/*
 * Waits until a thread does; who waits for us ends us when that takes too long.
 */
bool traced_thread_wait(pid_t tid, int *out_signal);
/* Lets go of one that stands still. */
void traced_thread_release(pid_t tid, int signal_number);

#endif
