/* thread: a thread of our own. Signals are for whoever waits for them: it gets none. */
#ifndef CLRPERF_BASE_THREAD_H
#define CLRPERF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* False when there can be none; `*out` is not set then. The caller joins it. */
bool thread_start(pthread_t *out, void *(*run)(void *user), void *user);

#endif
