#include "collect/target_files.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/target_root.h"
#include "collect/live_memory.h"
#include "collect/proc_file.h"
#include "read/procfs.h"

enum { FILES_ROOTS_MAX = 4096 };

#define FILES_IMAGE_BYTES_MAX (4ull << 30)

void target_files_done(struct target_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (files->roots[i].root_fd >= 0)
            close(files->roots[i].root_fd);
        if (files->roots[i].pidfd >= 0)
            close(files->roots[i].pidfd);
    }
    free(files->roots);
    *files = (struct target_files){ 0 };
}

void target_files_add(struct target_files *files, uint32_t process, uint32_t pid)
{
    if (process >= FILES_ROOTS_MAX)
        return;
    files->roots = mem_grow(files->roots, &files->capacity, process + 1, sizeof *files->roots);
    while (files->count <= process)
        files->roots[files->count++] = (struct target_root){ .root_fd = -1, .pidfd = -1 };
    struct target_root *root = &files->roots[process];
    if (root->root_fd >= 0)
        return;
    struct buffer text;
    struct proc_status status;
    buffer_init(&text, 1 << 16);
    if (proc_file_read((pid_t)pid, "status", &text, NULL) &&
        procfs_read_status(buffer_span(&text), &status, NULL)) {
        *root = (struct target_root){ -1, -1, status.uid, pid, (uint32_t)status.ns_pid };
        target_root_open((pid_t)pid, &root->root_fd, NULL);
        root->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    }
    buffer_done(&text);
}

int target_files_open(const struct target_files *files, uint32_t process, const char *path)
{
    struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR, .size_max = FILES_IMAGE_BYTES_MAX };
    int fd = -1;
    if (process >= files->count || files->roots[process].root_fd < 0 ||
        !target_root_open_path(files->roots[process].root_fd, path, rules, &fd, NULL))
        return -1;
    return fd;
}

int target_files_open_jit(const struct target_files *files, uint32_t process, bool jitdump)
{
    if (process >= files->count || files->roots[process].root_fd < 0)
        return -1;
    const struct target_root *root = &files->roots[process];
    struct target_file_rules rules = {
        .kind = TARGET_FILE_REGULAR, .owner_checked = true, .owner = root->uid, .own_links_only = true
    };
    char path[64];
    snprintf(path, sizeof path, jitdump ? "/tmp/jit-%" PRIu32 ".dump" : "/tmp/perf-%" PRIu32 ".map",
             root->ns_pid);
    int fd = -1;
    return target_root_open_path(root->root_fd, path, rules, &fd, NULL) ? fd : -1;
}

static bool target_root_is_alive(const struct target_root *root)
{
    struct pollfd end = { .fd = root->pidfd, .events = POLLIN };
    return root->pidfd >= 0 && poll(&end, 1, 0) == 0;
}

void target_files_read_memory(const struct target_files *files, uint32_t process, const uint64_t *addrs,
                              size_t count, size_t size, uint8_t *into, uint32_t *got)
{
    struct live_memory *live;
    memset(got, 0, count * sizeof *got);
    if (process >= files->count || !target_root_is_alive(&files->roots[process]) ||
        !live_memory_open((pid_t)files->roots[process].pid, 0, &live, NULL))
        return;
    struct memory_piece *pieces = mem_alloc(count, sizeof *pieces);
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct memory_piece){ .addr = addrs[i], .into = into + i * size, .size = size };
    const struct memory *memory = live_memory_view(live);
    memory->read(memory->user, pieces, count);
    if (target_root_is_alive(&files->roots[process])) /* else it may have been another process */
        for (size_t i = 0; i < count; i++)
            got[i] = (uint32_t)pieces[i].got;
    free(pieces);
    live_memory_close(live);
}
