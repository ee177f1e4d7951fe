/*
 * memory_thread: the thread by which the kernel shows the memory, files and root directory of a process.
 *
 * By the process's id it shows those of its first thread, which lets go of them when it ends: the main() of a
 * program in C may call pthread_exit() while its other threads run on. /proc and process_vm_readv(2) take the
 * id of any thread.
 */
#ifndef CLRPERF_BASE_MEMORY_THREAD_H
#define CLRPERF_BASE_MEMORY_THREAD_H

#include <sys/types.h>

/*
 * `pid`, or, where its first thread has ended while others run, the first of those. That one may end, too:
 * what is asked by it fails then, as of a process that is gone, and this is asked again.
 */
pid_t memory_thread_of(pid_t pid);

#endif
