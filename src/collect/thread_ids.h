/*
 * thread_ids: the threads of one process by the numbers it knows them by itself.
 *
 * In a container a thread has another number than it has for us; /proc/PID/task/TID/status has both. Where a
 * process lives in our own pid namespace the numbers are the same, and nothing is looked up.
 */
#ifndef CLRPERF_COLLECT_THREAD_IDS_H
#define CLRPERF_COLLECT_THREAD_IDS_H

#include <stdint.h>
#include <sys/types.h>

struct thread_ids;

/* `ns_pid`: its own idea of its number; 0 means the same as ours. */
struct thread_ids *thread_ids_new(pid_t pid, uint32_t ns_pid);
void thread_ids_free(struct thread_ids *ids);
/*
 * Our number of the thread that the process calls `ns_tid`, or 0: it ended before anybody looked. Threads are
 * listed again for one that is new, four times a second at most, and for one that was not among them again
 * after seconds only. `now_ns`: CLOCK_MONOTONIC, not going back.
 */
uint32_t thread_ids_find(struct thread_ids *ids, uint64_t ns_tid, uint64_t now_ns);

#endif
