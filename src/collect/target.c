#include "collect/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/pidfd.h"
#include "base/target_root.h"
#include "collect/container_name.h"
#include "collect/proc_file.h"
#include "collect/socket_name.h"
#include "collect/target_probe.h"
#include "collect/target_runtime.h"
#include "collect/target_user.h"
#include "read/procfs.h"

enum { PROC_BYTES_MAX = 32 << 20, PATH_BYTES_MAX = 4096, SILENT_THREADS = 16 };

void target_done(struct target *t)
{
    if (t->look)
        target_probe_drop(t->look);
    free(t->look);
    if (t->pidfd >= 0)
        close(t->pidfd);
    free(t->name);
    free(t->command_line);
    free(t->entry_assembly);
    free(t->cgroup);
    free(t->container_id);
    free(t->container_name);
    free(t->image);
    free(t->socket);
    *t = (struct target){ .pidfd = -1 };
}

bool target_is_alive(const struct target *t)
{
    return t->pidfd >= 0 && !pidfd_has_ended(t->pidfd);
}

const char *target_label(const struct target *t)
{
    return t->entry_assembly ? t->entry_assembly : t->name;
}

const char *target_runtime_text(const struct target *t)
{
    return runtime_version_or_kind(t->runtime, &t->version);
}

static bool open_pidfd(pid_t pid, int *out_fd, struct error *err)
{
    int fd = pidfd_of(pid);
    if (fd >= 0) {
        *out_fd = fd;
        return true;
    }
    int e = errno;
    if (e == ESRCH) {
        error_set(err, ERROR_TARGET, "there is no process %d", (int)pid);
        return error_hint(err, "clrperf ps lists the .NET processes");
    }
    if (e == EINVAL || e == ENOENT) {
        error_set(err, ERROR_TARGET, "%d is a thread, not a process", (int)pid);
        return error_hint(err, "give the id of its process: the Tgid line of /proc/%d/status", (int)pid);
    }
    return error_system(err, e, "cannot open process %d", (int)pid);
}

static char *copy_span(struct span text)
{
    size_t size = text.size < TARGET_TEXT_MAX ? text.size : TARGET_TEXT_MAX;
    char *copy = mem_alloc(size + 1, 1);
    if (size)
        memcpy(copy, text.data, size);
    return copy;
}

static bool read_stat(struct target *t, struct buffer *scratch, struct error *err)
{
    struct proc_stat stat;
    if (!proc_file_read(t->pid, "stat", scratch, err) || !procfs_read_stat(buffer_span(scratch), &stat, err))
        return false;
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    struct timespec boot = { 0 };
    clock_gettime(CLOCK_BOOTTIME, &boot);
    uint64_t up_ns = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec;
    uint64_t start_ns = stat.start_ticks < up_ns / tick_ns ? stat.start_ticks * tick_ns : up_ns;
    t->parent = stat.parent;
    t->start_ticks = stat.start_ticks;
    t->started_ns = clock_realtime_ns() - (up_ns - start_ns);
    t->cpu_ns = (stat.user_ticks + stat.system_ticks) * tick_ns;
    t->threads = stat.threads;
    t->name = copy_span(stat.name);
    return true;
}

static bool read_status(struct target *t, struct buffer *scratch, struct error *err)
{
    struct proc_status status;
    if (!proc_file_read(t->pid, "status", scratch, err) ||
        !procfs_read_status(buffer_span(scratch), &status, err))
        return false;
    t->ns_pid = status.ns_pid;
    t->uid = status.uid;
    t->gid = status.gid;
    return true;
}

static void read_command_line(struct target *t, struct span cmdline)
{
    t->command_line = copy_span(cmdline);
    size_t size = cmdline.size < TARGET_TEXT_MAX ? cmdline.size : TARGET_TEXT_MAX;
    while (size && !t->command_line[size - 1])
        size--;
    for (size_t i = 0; i < size; i++) {
        if (!t->command_line[i])
            t->command_line[i] = ' ';
    }
}

static void read_cgroup(struct target *t, struct buffer *scratch)
{
    if (!proc_file_read(t->pid, "cgroup", scratch, NULL))
        return;
    struct span path = procfs_cgroup_path(buffer_span(scratch));
    struct span id = procfs_container_id(path);
    if (path.size)
        t->cgroup = copy_span(path);
    if (id.size == 0)
        return;
    t->container_id = copy_span(id);
    t->container_name = container_name_find(t->container_id);
}

/* `/tmp`, or the TMPDIR that the target was started with; what it may not say is as good as unset. */
static void socket_folder(struct target *t, struct buffer *scratch, char *out, size_t out_size)
{
    struct span value = { 0 };
    snprintf(out, out_size, "/tmp");
    if (!proc_file_read(t->pid, "environ", scratch, NULL))
        return;
    struct span text = buffer_span(scratch);
    static const char *const switches[] = { "DOTNET_EnableDiagnostics", "DOTNET_EnableDiagnostics_IPC",
                                            "COMPlus_EnableDiagnostics" };
    for (size_t i = 0; i < ARRAY_LEN(switches); i++) {
        if (procfs_environ_find(text, switches[i], &value) && value.size == 1 && value.data[0] == '0')
            t->diagnostics_off = true;
    }
    if (procfs_environ_find(text, "TMPDIR", &value) && value.size && value.size < out_size) {
        memcpy(out, value.data, value.size);
        out[value.size] = 0;
        while (value.size > 1 && out[value.size - 1] == '/')
            out[--value.size] = 0;
    }
}

/* The socket inside the root, and whose it is. */
static void find_socket(struct target *t, int root_fd, const char *folder, const struct socket_keys *keys)
{
    char path[PATH_BYTES_MAX + SOCKET_NAME_MAX];
    struct stat st;
    AUTO_FD int own_root = -1;
    AUTO_FD int handle = -1;
    if (root_fd < 0) {
        /* its root is closed to us: it may be ours, and then the name is telling enough */
        own_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        root_fd = own_root;
    }
    if (!socket_keys_open(keys, root_fd, folder, path, sizeof path, &handle, NULL) || fstat(handle, &st) < 0)
        return;
    t->socket_owner = st.st_uid;
    t->socket = mem_copy_string(path);
}

static void read_executable(struct target *t, char *exe, size_t exe_size)
{
    static const char deleted[] = PROCFS_DELETED;
    exe[0] = 0;
    if (!proc_file_link(t->pid, "exe", exe, exe_size, NULL))
        return;
    size_t size = strlen(exe), suffix = sizeof deleted - 1;
    if (size > suffix && strcmp(exe + size - suffix, deleted) == 0)
        exe[size - suffix] = 0;
    const char *slash = strrchr(exe, '/');
    free(t->name);
    t->name = mem_copy_string(slash ? slash + 1 : exe);
}

/* All that may take for ever. /proc first: it judges our rights, and files after it: they judge the user's.
 */
static void look(struct target *t)
{
    char exe[PATH_BYTES_MAX], folder[PATH_BYTES_MAX];
    struct buffer scratch, cmdline;
    buffer_init(&scratch, PROC_BYTES_MAX);
    buffer_init(&cmdline, TARGET_TEXT_MAX);
    read_executable(t, exe, sizeof exe);
    AUTO_FD int root = -1;
    target_root_open(t->pid, &root, NULL);
    proc_file_read(t->pid, "cmdline", &cmdline, NULL);
    read_command_line(t, buffer_span(&cmdline));
    read_cgroup(t, &scratch);
    socket_folder(t, &scratch, folder, sizeof folder);
    target_find_runtime(t, buffer_span(&cmdline), exe);
    struct socket_keys keys;
    socket_keys_of(t->pid, (uint32_t)t->ns_pid, t->start_ticks, &keys);
    struct own_user own = target_user_become(t->uid, t->gid);
    target_find_library(t, root);
    target_find_version(t, root);
    find_socket(t, root, folder, &keys);
    if (t->container_id && !t->container_name)
        t->container_name = container_host_name(t->container_id, root);
    if (t->socket && t->runtime == RUNTIME_NONE && t->maps_denied)
        t->runtime = RUNTIME_CORECLR;
    target_user_leave(&own);
    buffer_done(&scratch);
    buffer_done(&cmdline);
}

static void nothing_seen(struct target *t)
{
    t->maps_denied = true;
    t->silent = true;
    t->runtime = target_has_runtime_thread(t->pid, SILENT_THREADS) ? RUNTIME_CORECLR : RUNTIME_NONE;
}

bool target_begin(pid_t pid, struct target *out, struct error *err)
{
    struct target t = { .pid = pid, .pidfd = -1 };
    struct buffer scratch;
    buffer_init(&scratch, PROC_BYTES_MAX);
    bool ok =
        open_pidfd(pid, &t.pidfd, err) && read_stat(&t, &scratch, err) && read_status(&t, &scratch, err);
    buffer_done(&scratch);
    if (!ok) {
        target_done(&t);
        return false;
    }
    struct target_probe probe;
    if (target_probe_begin(&t, look, TARGET_PROBE_MS, &probe, NULL)) {
        t.look = mem_alloc(1, sizeof *t.look);
        *t.look = probe;
    } else {
        nothing_seen(&t);
    }
    *out = t;
    return true;
}

bool target_finish(struct target *t, struct error *err)
{
    AUTO_FREE struct target_probe *look = t->look;
    t->look = NULL;
    if (look && !target_probe_finish(look, t, NULL))
        nothing_seen(t);
    return target_is_alive(t) || error_set(err, ERROR_TARGET, "process %d has just ended", (int)t->pid);
}

bool target_open(pid_t pid, struct target *out, struct error *err)
{
    if (!target_begin(pid, out, err))
        return false;
    if (target_finish(out, err))
        return true;
    target_done(out);
    return false;
}
