#include "collect/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory_thread.h"
#include "base/own.h"
#include "read/procfs.h"

enum {
    READ_BYTES = 1 << 15,
    STAT_BYTES_MAX = 4096,
    STATUS_BYTES_MAX = 1 << 16,
    STOP_NS = 2000000,
    PATH_BYTES = 64,
};

bool proc_file_read_more(int fd, struct buffer *out, bool *more)
{
    ssize_t got = 0;
    size_t room = out->ceiling - out->size;
    size_t want = room < READ_BYTES ? room : READ_BYTES;
    uint8_t *into = want ? buffer_reserve(out, want) : NULL;
    while (into && (got = read(fd, into, want)) < 0 && errno == EINTR)
        ;
    *more = got > 0;
    out->size += got > 0 ? (size_t)got : 0;
    return got >= 0;
}

static bool read_fd(int fd, struct buffer *out)
{
    bool ok = true, more = true;
    while (ok && more)
        ok = proc_file_read_more(fd, out, &more);
    return ok;
}

bool proc_file_explain(int os_error, pid_t pid, const char *name, struct error *err)
{
    if (os_error == ENOENT || os_error == ESRCH)
        return error_set(err, ERROR_TARGET, "process %d is gone", (int)pid);
    error_system(err, os_error, "cannot read '%s' of process %d", name, (int)pid);
    if (os_error == EACCES || os_error == EPERM)
        error_hint(err, "run as the user of that process, or with CAP_SYS_PTRACE (sudo)");
    return false;
}

/* What a process loses with its first thread, and its other threads still have. */
static bool is_of_memory(const char *name)
{
    static const char *const names[] = { "cmdline", "environ", "exe", "maps" };
    bool found = strncmp(name, "fd/", 3) == 0;
    for (size_t i = 0; i < ARRAY_LEN(names) && !found; i++)
        found = strcmp(name, names[i]) == 0;
    return found;
}

static void write_path(pid_t pid, const char *name, char out[PATH_BYTES])
{
    pid_t shown = is_of_memory(name) ? memory_thread_of(pid) : pid;
    snprintf(out, PATH_BYTES, "/proc/%d/%s", (int)shown, name);
}

bool proc_file_open(pid_t pid, const char *name, int *out_fd, struct error *err)
{
    char path[PATH_BYTES];
    write_path(pid, name, path);
    *out_fd = open(path, O_RDONLY | O_CLOEXEC);
    return *out_fd >= 0 || proc_file_explain(errno, pid, name, err);
}

bool proc_file_read(pid_t pid, const char *name, struct buffer *out, struct error *err)
{
    AUTO_FD int fd = -1;
    buffer_clear(out);
    if (!proc_file_open(pid, name, &fd, err))
        return false;
    return read_fd(fd, out) || proc_file_explain(errno, pid, name, err);
}

bool proc_file_read_task(pid_t pid, pid_t tid, const char *name, struct buffer *out, struct error *err)
{
    char file[64];
    snprintf(file, sizeof file, "task/%d/%s", (int)tid, name);
    return proc_file_read(pid, file, out, err);
}

bool proc_file_read_path(const char *path, struct buffer *out, struct error *err)
{
    return proc_file_read_at(AT_FDCWD, path, out, err);
}

bool proc_file_read_at(int folder, const char *path, struct buffer *out, struct error *err)
{
    buffer_clear(out);
    AUTO_FD int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !read_fd(fd, out))
        return error_system(err, errno, "cannot read '%s'", path);
    return true;
}

bool proc_file_stat(pid_t pid, struct proc_stat *out, struct error *err)
{
    struct buffer text;
    buffer_init(&text, STAT_BYTES_MAX);
    bool ok = proc_file_read(pid, "stat", &text, err) && procfs_read_stat(buffer_span(&text), out, err);
    if (ok)
        out->name = (struct span){ 0 };
    buffer_done(&text);
    return ok;
}

bool proc_file_status(pid_t pid, struct proc_status *out, struct error *err)
{
    struct buffer text;
    buffer_init(&text, STATUS_BYTES_MAX);
    bool ok = proc_file_read(pid, "status", &text, err) && procfs_read_status(buffer_span(&text), out, err);
    buffer_done(&text);
    return ok;
}

bool proc_file_has_ended(pid_t tid)
{
    struct proc_stat stat;
    return !proc_file_stat(tid, &stat, NULL) || stat.state == 'Z' || stat.state == 'X';
}

bool proc_file_is_stopped(pid_t pid)
{
    struct proc_stat stat;
    return proc_file_stat(pid, &stat, NULL) && (stat.state == 'T' || stat.state == 't');
}

bool proc_file_stays_stopped(pid_t pid)
{
    if (!proc_file_is_stopped(pid))
        return false;
    nanosleep(&(struct timespec){ .tv_nsec = STOP_NS }, NULL);
    return proc_file_is_stopped(pid);
}

bool proc_file_start_ticks(pid_t pid, uint64_t *out, struct error *err)
{
    struct proc_stat stat;
    bool ok = proc_file_stat(pid, &stat, err);
    if (ok)
        *out = stat.start_ticks;
    return ok;
}

bool proc_file_is_process(pid_t pid, uint64_t start_ticks)
{
    uint64_t ticks;
    return proc_file_start_ticks(pid, &ticks, NULL) && ticks == start_ticks;
}

bool proc_file_number(const char *path, int64_t *out)
{
    char text[32];
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (got <= 0)
        return false;
    text[got] = 0;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno)
        return false;
    *out = value;
    return true;
}

bool proc_file_link(pid_t pid, const char *name, char *out, size_t out_size, struct error *err)
{
    char path[PATH_BYTES];
    write_path(pid, name, path);
    ssize_t got = readlink(path, out, out_size - 1);
    if (got < 0)
        return proc_file_explain(errno, pid, name, err);
    out[got] = 0;
    return true;
}
