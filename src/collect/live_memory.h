/*
 * live_memory: the memory of a running process, read without being held up by it and without stopping it.
 *
 * A page may never arrive (it can be backed by a file system or a handler that does not answer), and the
 * kernel then waits with whoever reads. So a child process reads, by process_vm_readv(2), and is killed and
 * replaced when it takes too long; the piece it hung on counts as unreadable. Belongs to one thread.
 */
#ifndef CLRPERF_COLLECT_LIVE_MEMORY_H
#define CLRPERF_COLLECT_LIVE_MEMORY_H

#include <sys/types.h>

#include "base/error.h"
#include "base/memory.h"

enum {
    LIVE_MEMORY_DEADLINE_MS = 500, /* of one batch of at most 256 KiB */
    LIVE_MEMORY_HANGS_MAX = 4,     /* after so many the process's memory is not read any more, */
    LIVE_MEMORY_FORGET_MS = 60000, /* unless the last one was so long ago: a machine can stand still, too */
};

struct live_memory;

/*
 * Takes a handle of process `pid`, lists its mappings and tries to read some bytes. `start_ticks`: field 22
 * of its /proc/PID/stat, or 0. ERROR_TARGET when it is gone or another one, ERROR_PERMISSION without rights.
 */
bool live_memory_open(pid_t pid, uint64_t start_ticks, struct live_memory **out, struct error *err);
/*
 * The same in two steps, of which the first needs no process: its child is there when one is chosen. NULL
 * without memory to share with it, errno says why. With the first mappings only: live_memory_refresh() comes
 * before anything else is asked. When it fails *live is to be closed.
 */
struct live_memory *live_memory_new(void);
bool live_memory_attach(struct live_memory *live, pid_t pid, uint64_t start_ticks, struct error *err);
/* NULL is fine. */
void live_memory_close(struct live_memory *live);
/* The calling thread will ask for little, again and again: see thread_keep_cpu(). */
void live_memory_keep_near(struct live_memory *live);
/* Nothing is read any more: the child ends while others work. */
void live_memory_finish(struct live_memory *live);
/* Lists the mappings anew: what memory.mappings pointed to before is gone. On failure the old list stays. */
bool live_memory_refresh(struct live_memory *live, struct error *err);
/* Whether the process is still there. */
bool live_memory_lives(const struct live_memory *live);
/* Owned by `live`, as long as it. Reads nothing any more once the process has ended. */
const struct memory *live_memory_view(const struct live_memory *live);
/* Reads once more where batches met their deadline too often; the next one that does ends it: what stood
 * still may have been the machine. */
void live_memory_try_again(struct live_memory *live);
/* How often a batch met its deadline, of late. */
unsigned live_memory_hangs(const struct live_memory *live);

#endif
