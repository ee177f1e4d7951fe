/*
 * thread_wait: what a thread waits for in the kernel, in words.
 *
 * From the number and the arguments of the system call it is in (x86-64; asm/unistd_64.h): "futex (timed)",
 * "read of fd 0 (pipe:[4711])", "sleep of 1.50 s".
 */
#ifndef CLRPERF_COLLECT_THREAD_WAIT_H
#define CLRPERF_COLLECT_THREAD_WAIT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/memory_pages.h"
#include "collect/thread_registers.h"

#define THREAD_WAIT_LIMITED ", for a limited time" /* the last words, where a wait ends by itself */

/* Appends what a descriptor of the process is open on; false when that is not known. */
typedef bool thread_wait_fd_fn(void *user, int fd, struct buffer *out);

struct thread_wait_sources {
    struct memory_pages *pages; /* for times and sets of descriptors */
    thread_wait_fd_fn *fd;      /* or NULL */
    void *user;
};

/* Want what thread_wait_describe() will read, see memory_pages_want(); the second once the first was fetched.
 */
void thread_wait_want_code(const struct thread_registers *registers, struct memory_pages *pages);
void thread_wait_want_arguments(const struct thread_registers *registers,
                                const struct thread_wait_sources *sources);
/* Appends the words; nothing when the thread is in no system call. */
void thread_wait_describe(const struct thread_registers *registers, const struct thread_wait_sources *sources,
                          struct buffer *out);

#endif
