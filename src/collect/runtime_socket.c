#include "collect/runtime_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/target_root.h"
#include "clr/diagnostics_ipc.h"
#include "collect/time_namespace.h"

enum { PROC_FILE_MAX = 4 << 20, FOLDER_ENTRIES_MAX = 65536, NS_PER_MS = 1000000 };

/* What /proc tells of the target. */
struct target {
    pid_t pid;
    uint64_t start_ticks; /* as we see it */
    uint64_t key;         /* the same as the target sees it */
    uint32_t ns_pid;
    uid_t uid;
    gid_t gid;
    char folder[512]; /* where its runtime puts the socket, in the target's root */
};

/* Replaces `out` by a file of /proc/PID with a NUL behind. */
static bool read_proc(pid_t pid, const char *name, struct buffer *out, struct error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    buffer_clear(out);
    while (fd >= 0) {
        uint8_t *room = buffer_reserve(out, 4096);
        if (!room)
            return error_set(err, ERROR_LIMIT, "'%s' is too large", path);
        ssize_t got = read(fd, room, 4096);
        if (got < 0)
            break;
        out->size += (size_t)got;
        if (got == 0) {
            buffer_u8(out, 0);
            return true;
        }
    }
    if (errno == ENOENT || errno == ESRCH)
        return error_set(err, ERROR_TARGET, "no process %d", (int)pid);
    error_system(err, errno, "cannot read '%s'", path);
    if (err && err->kind == ERROR_PERMISSION)
        error_hint(err, "run as the target's user, or as root");
    return false;
}

/* Field 22, in clock ticks since boot: the command's name before it may hold anything, even ')'. */
static bool read_start_ticks(pid_t pid, struct buffer *scratch, uint64_t *out, struct error *err)
{
    if (!read_proc(pid, "stat", scratch, err))
        return false;
    const char *field = strrchr((const char *)scratch->data, ')');
    for (unsigned i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    if (!field)
        return error_set(err, ERROR_INPUT, "'/proc/%d/stat' has no start time", (int)pid);
    *out = strtoull(field, NULL, 10);
    return true;
}

/* The nth number (0, 1, ... or -1 for the last) behind "KEY:" at a line's start; false without one. */
static bool status_number(const char *status, const char *key, int nth, uint64_t *out)
{
    size_t length = strlen(key);
    const char *line = status;
    while (line && strncmp(line, key, length) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return false;
    bool found = false;
    const char *at = line + length;
    for (int i = 0; *at && *at != '\n' && (nth < 0 || i <= nth); i++) {
        char *end;
        uint64_t value = strtoull(at, &end, 10);
        if (end == at)
            break;
        if (nth < 0 || i == nth) {
            *out = value;
            found = true;
        }
        at = end;
    }
    return found;
}

static bool read_identity(struct target *t, struct buffer *scratch, struct error *err)
{
    if (!read_proc(t->pid, "status", scratch, err))
        return false;
    const char *status = (const char *)scratch->data;
    uint64_t ns_pid = (uint64_t)t->pid, uid, gid;
    status_number(status, "NSpid:", -1, &ns_pid);
    if (!status_number(status, "Uid:", 3, &uid) || !status_number(status, "Gid:", 3, &gid))
        return error_set(err, ERROR_INPUT, "'/proc/%d/status' names no user", (int)t->pid);
    t->ns_pid = (uint32_t)ns_pid;
    t->uid = (uid_t)uid;
    t->gid = (gid_t)gid;
    return true;
}

/* The environment the target was started with: what it set since does not move its socket. */
static bool read_folder(struct target *t, struct buffer *scratch, struct error *err)
{
    static const char key[] = "TMPDIR=";
    snprintf(t->folder, sizeof t->folder, "/tmp");
    if (!read_proc(t->pid, "environ", scratch, err))
        return false;
    struct cursor c = cursor_over(buffer_span(scratch));
    while (cursor_left(&c) > 0) {
        struct span entry = cursor_zstring(&c);
        if (entry.size < sizeof key || memcmp(entry.data, key, sizeof key - 1) != 0)
            continue;
        const char *value = (const char *)entry.data + sizeof key - 1;
        if (*value != '/' || strlen(value) >= sizeof t->folder)
            return error_set(err, ERROR_UNSUPPORTED, "the TMPDIR of process %d, '%.100s', is not usable",
                             (int)t->pid, value);
        snprintf(t->folder, sizeof t->folder, "%s", value);
        break;
    }
    return true;
}

static bool read_target(pid_t pid, uint64_t start_ticks, struct target *out, struct error *err)
{
    struct buffer scratch;
    buffer_init(&scratch, PROC_FILE_MAX);
    *out = (struct target){ .pid = pid };
    bool ok = read_start_ticks(pid, &scratch, &out->start_ticks, err) && read_identity(out, &scratch, err) &&
              read_folder(out, &scratch, err);
    buffer_done(&scratch);
    if (ok && start_ticks && start_ticks != out->start_ticks)
        return error_set(err, ERROR_TARGET, "process %d has ended; another one has its id now", (int)pid);
    int64_t ns_per_tick = 1000000000 / sysconf(_SC_CLK_TCK);
    out->key = out->start_ticks + (uint64_t)(time_namespace_offsets(pid).boottime_ns / ns_per_tick);
    return ok;
}

struct own_user {
    uid_t uid;
    gid_t gid;
    bool switched;
};

/* From here on the file system sees the target's user. Only root can and needs to. */
static struct own_user become_target(const struct target *t)
{
    struct own_user own = { .switched = geteuid() == 0 && (t->uid != 0 || t->gid != 0) };
    if (own.switched) {
        own.gid = (gid_t)setfsgid(t->gid);
        own.uid = (uid_t)setfsuid(t->uid);
    }
    return own;
}

static void become_self(struct own_user own)
{
    if (own.switched) {
        setfsuid(own.uid);
        setfsgid(own.gid);
    }
}

/* Whether the folder has a socket with the target's pid, but an earlier process's start time. */
static bool has_stale_socket(int root_fd, const struct target *t)
{
    struct target_file_rules rules = { .kind = TARGET_FILE_DIRECTORY };
    int fd;
    if (!target_root_open_path(root_fd, t->folder, rules, &fd, NULL))
        return false;
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return false;
    }
    char start[64];
    int length = snprintf(start, sizeof start, "dotnet-diagnostic-%" PRIu32 "-", t->ns_pid);
    bool found = false;
    struct dirent *entry;
    for (unsigned i = 0; !found && i < FOLDER_ENTRIES_MAX && (entry = readdir(folder)); i++)
        found = strncmp(entry->d_name, start, (size_t)length) == 0;
    closedir(folder);
    return found;
}

static bool no_socket(int root_fd, const struct target *t, struct error *err)
{
    if (has_stale_socket(root_fd, t)) {
        error_set(err, ERROR_TARGET,
                  "process %d has no diagnostics socket; one in '%s' is of an earlier process", (int)t->pid,
                  t->folder);
        return error_hint(err, "its /proc/PID/environ may name another TMPDIR than it uses");
    }
    error_set(err, ERROR_TARGET, "process %d has no .NET diagnostics socket in '%s'", (int)t->pid, t->folder);
    return error_hint(err,
                      "it is no .NET process, is still starting, or runs with DOTNET_EnableDiagnostics=0");
}

/* A handle of the socket: it stays the same one even when its name is moved. */
static bool open_socket(const struct target *t, int *out_fd, struct error *err)
{
    AUTO_FD int root_fd = -1;
    if (!target_root_open(t->pid, &root_fd, err))
        return false;
    char path[sizeof t->folder + 80];
    snprintf(path, sizeof path, "%s/dotnet-diagnostic-%" PRIu32 "-%" PRIu64 "-socket", t->folder, t->ns_pid,
             t->key);
    struct target_file_rules rules = { .kind = TARGET_FILE_SOCKET };
    struct own_user own = become_target(t);
    bool ok = target_root_open_path(root_fd, path, rules, out_fd, err);
    become_self(own);
    if (!ok && err && err->os_error == ENOENT)
        return no_socket(root_fd, t, err);
    return ok;
}

static bool connect_handle(int handle, const struct target *t, unsigned timeout_ms, int *out_fd,
                           struct error *err)
{
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_system(err, errno, "cannot make a socket");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", handle);
    uint64_t deadline_ns = clock_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    for (;;) {
        struct own_user own = become_target(t);
        int result = connect(fd, (const struct sockaddr *)&address, sizeof address);
        int e = errno;
        become_self(own);
        if (result == 0)
            break;
        if (e != EAGAIN && e != EINTR) {
            error_system(err, e, "cannot connect to the .NET runtime of process %d", (int)t->pid);
            if (e == EACCES || e == EPERM)
                error_hint(err, "run as the target's user, or as root");
            return false;
        }
        if (clock_monotonic_ns() >= deadline_ns) /* its queue of connections stays full */
            return error_set(err, ERROR_TARGET, "the .NET runtime of process %d takes no connection",
                             (int)t->pid);
        nanosleep(&(struct timespec){ .tv_nsec = 5 * NS_PER_MS }, NULL);
    }
    *out_fd = take_fd(&fd);
    return true;
}

/* The socket's name proves nothing: whoever listens there must be the target itself. */
static bool check_peer(int fd, const struct target *t, struct error *err)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return error_system(err, errno, "cannot tell who serves the diagnostics socket of process %d",
                            (int)t->pid);
    if (peer.pid != t->pid)
        return error_set(err, ERROR_TARGET,
                         "the diagnostics socket of process %d is served by process %d: refused", (int)t->pid,
                         (int)peer.pid);
    struct target now;
    return read_target(t->pid, t->start_ticks, &now, err);
}

bool runtime_socket_connect(pid_t pid, uint64_t start_ticks, unsigned timeout_ms, int *out_fd,
                            struct error *err)
{
    struct target target;
    if (!read_target(pid, start_ticks, &target, err))
        return false;
    AUTO_FD int handle = -1;
    AUTO_FD int fd = -1;
    if (!open_socket(&target, &handle, err) || !connect_handle(handle, &target, timeout_ms, &fd, err) ||
        !check_peer(fd, &target, err))
        return false;
    *out_fd = take_fd(&fd);
    return true;
}

bool runtime_socket_send(int fd, struct span request, struct error *err)
{
    ssize_t sent = send(fd, request.data, request.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return error_system(err, errno, "cannot send a request to the .NET runtime");
    if ((size_t)sent != request.size)
        return error_set(err, ERROR_TARGET, "the .NET runtime took only a part of a request");
    return true;
}

static bool receive_exactly(int fd, uint8_t *into, size_t size, uint64_t deadline_ns, struct error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(fd, into + done, size - done, MSG_DONTWAIT);
        if (got == 0)
            return error_set(err, ERROR_TARGET, "the .NET runtime closed the connection without an answer");
        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return error_system(err, errno, "cannot read the answer of the .NET runtime");
        uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= deadline_ns)
            return error_set(err, ERROR_TARGET, "the .NET runtime did not answer in time");
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        poll(&wait, 1, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1);
    }
    return true;
}

bool runtime_socket_receive(int fd, unsigned timeout_ms, struct buffer *content, bool *out_is_error,
                            struct error *err)
{
    uint64_t deadline_ns = clock_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    uint8_t header[IPC_HEADER_BYTES];
    uint32_t size;
    bool is_error;
    if (!receive_exactly(fd, header, sizeof header, deadline_ns, err) ||
        !ipc_read_header(span_of(header, sizeof header), &size, &is_error, err))
        return false;
    buffer_clear(content);
    uint8_t *room = buffer_reserve(content, size);
    if (size && !room)
        return error_set(err, ERROR_LIMIT, "an answer of %" PRIu32 " bytes", size);
    if (!receive_exactly(fd, room, size, deadline_ns, err))
        return false;
    content->size = size;
    *out_is_error = is_error;
    return true;
}
