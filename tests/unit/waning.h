/*
 * waning: a process of a test's whose threads end one after the other, the first of all first.
 */
#ifndef CLRPERF_TESTS_WANING_H
#define CLRPERF_TESTS_WANING_H

#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory_thread.h"
#include "child.h"

enum { WANING_THREADS = 3 };

struct waning {
    pid_t pid;
    pid_t shown;              /* the thread that shows its memory */
    int ends[WANING_THREADS]; /* a byte ends that thread */
    int waits[WANING_THREADS];
};

static void *waning_wait(void *user)
{
    char byte;
    (void)!read((int)(intptr_t)user, &byte, 1);
    syscall(SYS_exit, 0);
    return NULL;
}

static inline void waning_be(const struct waning *w, int ready)
{
    pthread_t thread;
    for (int i = 1; i < WANING_THREADS; i++)
        if (pthread_create(&thread, NULL, waning_wait, (void *)(intptr_t)w->waits[i]) != 0)
            _exit(1);
    (void)!write(ready, "", 1);
    waning_wait((void *)(intptr_t)w->waits[0]);
}

static inline struct waning waning_start(void)
{
    struct waning w;
    int ready[2], ends[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    for (int i = 0; i < WANING_THREADS; i++) {
        assert_int_equal(pipe(ends), 0);
        w.waits[i] = ends[0];
        w.ends[i] = ends[1];
    }
    w.shown = w.pid = child_fork();
    if (w.pid == 0)
        waning_be(&w, ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return w;
}

/* Ends the first thread that is left, and waits for that. */
static inline void waning_next(struct waning *w, int thread)
{
    pid_t before = w->shown;
    assert_int_equal(write(w->ends[thread], "", 1), 1);
    for (int i = 0; i < 60000 && w->shown == before; i++) {
        usleep(1000);
        w->shown = memory_thread_of(w->pid);
    }
    assert_int_not_equal(w->shown, before);
}

static inline void waning_done(struct waning *w)
{
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    for (int i = 0; i < WANING_THREADS; i++) {
        close(w->ends[i]);
        close(w->waits[i]);
    }
}

#endif
