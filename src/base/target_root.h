/*
 * target_root: opens files of a target inside the target's own root directory.
 *
 * A path that a target gave us may be a link out of its container, a FIFO that never answers, a
 * device, or be swapped between check and use. It is therefore resolved by the kernel below a handle
 * of the target's root (openat2 with RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS), first as a mere
 * handle (O_PATH), judged by fstat, and only then opened through that handle. Where there is no
 * openat2 (kernels before 5.6, and sandboxes that refuse it) it is walked component by component and every
 * link is refused.
 *
 * Nothing here changes credentials or sets a deadline: a mount of the target may still hang, so callers
 * that hold privileges do this in a helper process that runs as the target's user.
 */
#ifndef CLRPERF_BASE_TARGET_ROOT_H
#define CLRPERF_BASE_TARGET_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum target_file_kind {
    TARGET_FILE_REGULAR,   /* opened for reading, not blocking */
    TARGET_FILE_SOCKET,    /* a handle (O_PATH): connect to /proc/self/fd/N */
    TARGET_FILE_DIRECTORY, /* opened for listing and as the start of a next open */
};

struct target_file_rules {
    enum target_file_kind kind;
    uint64_t size_max;  /* a larger regular file is refused; 0: any size */
    bool owner_checked; /* the file must belong to `owner` or to uid 0, and nobody else may write to it */
    uid_t owner;
    bool own_links_only; /* refuse a file with several hard links (others can plant those) */
};

/* A handle of the root directory of `pid`. ERROR_TARGET when the process is gone. */
bool target_root_open(pid_t pid, int *out_root_fd, struct error *err);

/*
 * Opens `path`, absolute or not, as the process with this root would see it from its root, or as its
 * /proc/PID/maps shows it, where the root of the mount namespace counts instead.
 * ERROR_INPUT: it is there, but not what `rules` allow. ERROR_PERMISSION, ERROR_SYSTEM (with ENOENT
 * and the like) as the kernel says. The caller closes *out_fd.
 */
bool target_root_open_path(int root_fd, const char *path, struct target_file_rules rules, int *out_fd,
                           struct error *err);

/*
 * Opens what a link of the kernel's in /proc/PID leads to: "exe", "map_files/START-END". It needs no name any
 * more, or another file may have it. Fails as target_root_open_path().
 */
bool target_root_open_link(pid_t pid, const char *link, struct target_file_rules rules, int *out_fd,
                           struct error *err);

/* The walk for old kernels, on its own for tests. */
bool target_root_walk_path(int root_fd, const char *path, struct target_file_rules rules, int *out_fd,
                           struct error *err);

#endif
