/*
 * procfs: the text files of /proc/PID, as bytes in and fields out.
 *
 * A process chooses its own name, arguments, environment and the names of what it maps: all of it is
 * untrusted. Specified in proc(5). Spans that come out borrow from the text.
 */
#ifndef CLRPERF_READ_PROCFS_H
#define CLRPERF_READ_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"

/* /proc/PID/stat. The name may hold anything, `) R 1` too: what counts is behind the last `)`. */
struct proc_stat {
    struct span name; /* of the main thread, at most 15 bytes */
    char state;
    pid_t parent;
    uint64_t user_ticks, system_ticks; /* CPU time so far, in USER_HZ */
    /* of children that it waited for, and of theirs */
    uint64_t child_user_ticks, child_system_ticks;
    uint32_t threads;
    uint64_t start_ticks; /* since boot; with the pid it names a process for ever */
    uint64_t virtual_bytes;
    uint64_t stack_start; /* where the main thread's stack began; 0: not told */
};

bool procfs_read_stat(struct span text, struct proc_stat *out, struct error *err);

/* /proc/PID/status; keys count at the start of a line only. */
struct proc_status {
    uid_t uid, fs_uid; /* real, and the one for file access */
    gid_t gid, fs_gid;
    pid_t tgid;
    pid_t tracer;      /* who debugs it; 0: nobody */
    pid_t ns_pid;      /* the process as it sees itself: the last of NSpid */
    uint32_t ns_depth; /* pid namespaces below ours */
    uint64_t effective_capabilities;
    uint32_t seccomp; /* 0 off, 1 strict, 2 filter */
};

bool procfs_read_status(struct span text, struct proc_status *out, struct error *err);

/* One line of /proc/PID/maps. */
#define PROCFS_DELETED                                                                                       \
    " (deleted)" /* behind the path of a mapped file, or of an executable, without a name */

struct proc_mapping {
    uint64_t start, end; /* virtual, start < end */
    uint64_t file_off;
    uint64_t inode;
    uint32_t device_major, device_minor;
    bool readable, writable, executable, shared;
    bool deleted;     /* the path ended with " (deleted)", which was taken away */
    struct span path; /* as written: see procfs_unescape(); "[heap]" and the like, or empty */
};

/*
 * Takes the next well-formed mapping from *rest; false when there is none. Malformed lines are
 * skipped and counted in *malformed, which may be NULL. A last line without newline is not taken: it is cut.
 */
bool procfs_next_mapping(struct span *rest, struct proc_mapping *out, uint64_t *malformed);
/* Takes " (deleted)" from the end of a path; whether it was there. */
bool procfs_take_deleted(struct span *path);
/* Appends `path` with its octal escapes (\012) undone; a backslash before anything else stays. */
void procfs_unescape(struct span path, struct buffer *out);

/* The next argument of /proc/PID/cmdline, which ends each with a NUL; false when there is none. */
bool procfs_next_argument(struct span *rest, struct span *out);
/* The value of `name` in /proc/PID/environ; false when it is not set. */
bool procfs_environ_find(struct span text, const char *name, struct span *out);

/*
 * The path of /proc/PID/cgroup: of the unified hierarchy, or of version 1's where that has none.
 * Empty when there is no such line.
 */
struct span procfs_cgroup_path(struct span text);
/*
 * The container that a cgroup path names: the 64 hex digits of docker, containerd, cri-o and podman,
 * or the name that lxc and systemd-nspawn use. Empty when there is none.
 */
struct span procfs_container_id(struct span cgroup_path);

#endif
