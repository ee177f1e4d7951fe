#include "collect/target_files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/target_root.h"
#include "collect/live_memory.h"
#include "collect/mapped_file.h"
#include "collect/proc_file.h"
#include "read/bundled_file.h"
#include "read/procfs.h"

enum { FILES_ROOTS_MAX = 4096 };

#define FILES_IMAGE_BYTES_MAX (4ull << 30)

void target_files_done(struct target_files *files)
{
    for (size_t i = 0; i < files->root_count; i++)
        close(files->roots[i].fd);
    free(files->roots);
    free(files->seen);
    *files = (struct target_files){ 0 };
}

/* False before Linux 5.8, which cannot tell two views of one directory apart: then each stands for itself. */
static bool target_root_identify(struct target_root *root)
{
    struct statx st;
    if (statx(root->fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st) < 0 ||
        !(st.stx_mask & STATX_MNT_ID))
        return false;
    root->mount = st.stx_mnt_id;
    root->device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
    root->inode = st.stx_ino;
    return true;
}

/* The place of the root, from 1 on; 0 when there are too many. Takes over the descriptor. */
static size_t target_files_keep_root(struct target_files *files, int root_fd)
{
    struct target_root root = { .fd = root_fd };
    bool known = target_root_identify(&root);
    for (size_t i = 0; known && i < files->root_count; i++) {
        const struct target_root *other = &files->roots[i];
        if (other->mount == root.mount && other->device == root.device && other->inode == root.inode) {
            close(root_fd);
            return i + 1;
        }
    }
    if (files->root_count == FILES_ROOTS_MAX) {
        close(root_fd);
        return 0;
    }
    files->roots = mem_grow(files->roots, &files->root_capacity, files->root_count + 1, sizeof *files->roots);
    files->roots[files->root_count++] = root;
    return files->root_count;
}

static void set_seen(struct target_files *files, uint32_t process, const struct target_seen *seen)
{
    files->seen = mem_grow_zeroed(files->seen, &files->capacity, process + 1, sizeof *files->seen);
    if (files->count <= process)
        files->count = process + 1;
    files->seen[process] = *seen;
}

static struct target_seen seen_of(const struct target_files *files, uint32_t process)
{
    return process < files->count ? files->seen[process] : (struct target_seen){ 0 };
}

void target_files_add(struct target_files *files, uint32_t process, uint32_t pid)
{
    if (target_files_root(files, process) >= 0)
        return;
    struct proc_status status;
    struct target_seen seen = { .pid = pid };
    uint64_t still = 0;
    AUTO_FD int root_fd = -1;
    bool ok = proc_file_start_ticks((pid_t)pid, &seen.start_ticks, NULL) &&
              proc_file_status((pid_t)pid, &status, NULL) && target_root_open((pid_t)pid, &root_fd, NULL) &&
              proc_file_start_ticks((pid_t)pid, &still, NULL) && still == seen.start_ticks;
    if (!ok)
        return;
    seen.uid = status.uid;
    seen.ns_pid = (uint32_t)status.ns_pid;
    seen.root = target_files_keep_root(files, take_fd(&root_fd));
    set_seen(files, process, &seen);
}

void target_files_borrow(struct target_files *files, uint32_t process, uint32_t from)
{
    struct target_seen seen = { .root = seen_of(files, from).root, .borrowed = true };
    int own_fd;
    if (seen_of(files, process).root)
        return;
    if (!from && target_root_open(getpid(), &own_fd, NULL))
        seen.root = target_files_keep_root(files, own_fd);
    if (seen.root)
        set_seen(files, process, &seen);
}

int target_files_root(const struct target_files *files, uint32_t process)
{
    struct target_seen seen = seen_of(files, process);
    return seen.root && !seen.borrowed ? files->roots[seen.root - 1].fd : -1;
}

static const struct target_file_rules image_rules = {
    .kind = TARGET_FILE_REGULAR,
    .size_max = FILES_IMAGE_BYTES_MAX,
};

/* Whether the kernel told of a mapping of this file by this name. */
static bool is_image(const struct trace *t, const char *path, int fd)
{
    struct stat st;
    if (!t || fstat(fd, &st) != 0)
        return false;
    for (size_t i = 1; i < t->images.count; i++) {
        const struct trace_image *image = &t->images.rows[i];
        if (image->inode == st.st_ino && image->device_major == major(st.st_dev) &&
            image->device_minor == minor(st.st_dev) && strcmp(trace_string(t, image->path), path) == 0)
            return true;
    }
    return false;
}

/* Of native code; no bundle has any. */
static bool is_debug_file(const char *path)
{
    struct span name = span_of(path, strlen(path));
    return span_ends(name, ".debug") || span_ends(name, ".dbg");
}

/* Symbols: who reads them compares them with the image. */
static bool is_proven_later(const char *path)
{
    return is_debug_file(path) || span_ends(span_of(path, strlen(path)), ".pdb");
}

/* Where a path is looked for. */
struct root_view {
    int fd;
    bool borrowed;
    const struct trace *trace;
};

static int open_below(void *user, const char *path)
{
    const struct root_view *root = user;
    AUTO_FD int fd = -1;
    return target_root_open_path(root->fd, path, image_rules, &fd, NULL) &&
                   (!root->borrowed || is_proven_later(path) || is_image(root->trace, path, fd))
               ? take_fd(&fd)
               : -1;
}

static int open_nameless(const struct target_seen *seen, const char *deleted_path)
{
    uint64_t start_ticks;
    AUTO_FD int fd = -1;
    return mapped_file_open((pid_t)seen->pid, deleted_path, image_rules, &fd) &&
                   proc_file_start_ticks((pid_t)seen->pid, &start_ticks, NULL) &&
                   start_ticks == seen->start_ticks
               ? take_fd(&fd)
               : -1;
}

int target_files_open(const struct target_files *files, uint32_t process, const char *path)
{
    struct target_seen seen = seen_of(files, process);
    if (!seen.root)
        return -1;
    if (span_ends(span_of(path, strlen(path)), PROCFS_DELETED))
        return seen.borrowed ? -1 : open_nameless(&seen, path);
    struct root_view root = { files->roots[seen.root - 1].fd, seen.borrowed, files->trace };
    int fd = open_below(&root, path);
    return fd >= 0 || is_debug_file(path) ? fd : bundled_file_open(path, open_below, &root);
}

int target_files_open_jit(const struct target_files *files, uint32_t process, bool jitdump, const char *path,
                          struct error *err)
{
    int root_fd = target_files_root(files, process), fd = -1;
    if (root_fd < 0) {
        error_set(err, ERROR_TARGET, "the process is gone");
        return -1;
    }
    const struct target_seen *seen = &files->seen[process];
    struct target_file_rules rules = {
        .kind = TARGET_FILE_REGULAR, .owner_checked = true, .owner = seen->uid, .own_links_only = true
    };
    char usual[64];
    snprintf(usual, sizeof usual, jitdump ? "/tmp/jit-%" PRIu32 ".dump" : "/tmp/perf-%" PRIu32 ".map",
             seen->ns_pid);
    return target_root_open_path(root_fd, path ? path : usual, rules, &fd, err) ? fd : -1;
}

void target_files_read_memory(const struct target_files *files, uint32_t process, const uint64_t *addrs,
                              size_t count, size_t size, uint8_t *into, uint32_t *got)
{
    struct live_memory *live;
    memset(got, 0, count * sizeof *got);
    if (process >= files->count || !files->seen[process].start_ticks ||
        !live_memory_open((pid_t)files->seen[process].pid, files->seen[process].start_ticks, &live, NULL))
        return;
    struct memory_piece *pieces = mem_alloc(count, sizeof *pieces);
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct memory_piece){ .addr = addrs[i], .into = into + i * size, .size = size };
    const struct memory *memory = live_memory_view(live);
    memory->read(memory->user, pieces, count);
    for (size_t i = 0; i < count; i++)
        got[i] = (uint32_t)pieces[i].got;
    free(pieces);
    live_memory_close(live);
}
