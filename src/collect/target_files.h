/*
 * target_files: opens files as the watched processes see them, also after a process has ended.
 *
 * A handle of a process's root is taken when it is first seen; paths are resolved below it by
 * base/target_root. One that was gone by then most likely had the root of who started it: files are looked
 * for there, and are those meant only when the kernel told of a mapping of this very file; symbols when they
 * fit to such a one.
 */
#ifndef CLRPERF_COLLECT_TARGET_FILES_H
#define CLRPERF_COLLECT_TARGET_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/trace.h"

/* A view of the file system: most processes share one. */
struct target_root {
    int fd;
    uint64_t mount, device, inode; /* of its root directory */
};

/* A process that was seen. */
struct target_seen {
    size_t root;   /* of target_files.roots, from 1 on; 0: not known */
    bool borrowed; /* it is that of who started the process */
    uid_t uid;
    uint32_t pid, ns_pid;
    uint64_t start_ticks;
};

struct target_files {
    struct target_seen *seen; /* by row of trace.processes */
    size_t count, capacity;
    struct target_root *roots;
    size_t root_count, root_capacity;
    const struct trace *trace; /* whose images a borrowed root may lead to; or NULL: to none */
};

void target_files_done(struct target_files *files);
/* Takes a handle of the process's root; does nothing when it is gone, or known already. */
void target_files_add(struct target_files *files, uint32_t process, uint32_t pid);
/* Of a process that was gone before that: it has the root of another one; with 0, ours. */
void target_files_borrow(struct target_files *files, uint32_t process, uint32_t from);
/* The process's own root directory, borrowed, or -1. */
int target_files_root(const struct target_files *files, uint32_t process);
/*
 * An open regular file, or -1. The caller closes it. A path may lead into a program: see read/bundled_file.
 * One that ends in " (deleted)", as in /proc/PID/maps, means the file that the process has mapped, and not
 * what has its name now: as long as the process lives, and we may look (CAP_CHECKPOINT_RESTORE; its
 * executable without).
 */
int target_files_open(const struct target_files *files, uint32_t process, const char *path);
/* The perf map or jitdump that the process left at `path`, or in its /tmp when that is NULL, when it or root
 * owns it; or -1. ERROR_INPUT: it is there, but not to be believed. */
int target_files_open_jit(const struct target_files *files, uint32_t process, bool jitdump, const char *path,
                          struct error *err);
/*
 * Pieces of the process's memory: `count` of `size` bytes each at addrs[i] go to `into` (count * size bytes);
 * got[i]: bytes that were read. Nothing when it is not the same process any more.
 */
void target_files_read_memory(const struct target_files *files, uint32_t process, const uint64_t *addrs,
                              size_t count, size_t size, uint8_t *into, uint32_t *got);

#endif
