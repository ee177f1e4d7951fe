/*
 * target_memory: reads a running process's memory without being held up by it.
 *
 * A page may never arrive (it can be backed by a file system or a handler that does not answer), and the
 * kernel then waits with whoever reads. So a child process reads, and is killed when it takes too long.
 */
#ifndef CLRPERF_COLLECT_TARGET_MEMORY_H
#define CLRPERF_COLLECT_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TARGET_MEMORY_DEADLINE_MS = 200 };

/* `count` pieces of `size` bytes each at addrs[i] go to `into` (count * size bytes); got[i]: bytes that were
 * read. */
void target_memory_read(pid_t pid, const uint64_t *addrs, size_t count, size_t size, uint8_t *into,
                        uint32_t *got);

#endif
