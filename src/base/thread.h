/* thread: a thread of our own. Signals are for whoever waits for them: it gets none. */
#ifndef CLRPERF_BASE_THREAD_H
#define CLRPERF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* False when there can be none; `*out` is not set then. The caller joins it. */
bool thread_start(pthread_t *out, void *(*run)(void *user), void *user);
/*
 * The calling thread and a process that it asks again and again keep to the CPU that the thread is on: to
 * wake who sleeps on another one takes many times as long (a virtual machine: 35 us there and back, 4 us on
 * one). Threads that are started afterwards are free. False when nothing changed, or not for both.
 */
bool thread_keep_cpu(pid_t helper);

#endif
