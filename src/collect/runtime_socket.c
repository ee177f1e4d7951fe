#include "collect/runtime_socket.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/target_root.h"
#include "clr/diagnostics_ipc.h"
#include "collect/proc_file.h"
#include "collect/socket_name.h"
#include "collect/target_user.h"
#include "read/procfs.h"

enum {
    PROC_FILE_MAX = 8 << 20,
    FOLDER_ENTRIES_MAX = 65536,
    NS_PER_MS = 1000000,
    GIVEN_UP_LOOK_MS = 20,
};

/* A wait that has begun. */
struct waiting {
    uint64_t deadline_ns;
    const atomic_bool *given_up; /* or NULL */
};

static struct waiting wait_begin(struct runtime_socket_wait wait)
{
    return (struct waiting){ clock_monotonic_ns() + (uint64_t)wait.timeout_ms * NS_PER_MS, wait.given_up };
}

/* How long it may still take, up to the next look at whether it is given up; 0: it is over. */
static unsigned wait_left_ms(const struct waiting *w)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (now_ns >= w->deadline_ns || (w->given_up && atomic_load(w->given_up)))
        return 0;
    uint64_t left_ms = (w->deadline_ns - now_ns) / NS_PER_MS + 1;
    return w->given_up && left_ms > GIVEN_UP_LOOK_MS ? GIVEN_UP_LOOK_MS : (unsigned)left_ms;
}

static bool timed_out(struct error *err)
{
    if (err)
        err->os_error = ETIMEDOUT;
    return false;
}

/* What /proc tells of the process that should serve the socket. */
struct socket_owner {
    pid_t pid;
    uint64_t start_ticks; /* as we see it */
    struct socket_keys keys;
    uid_t uid;
    gid_t gid;
    char folder[512]; /* where its runtime puts the socket, in the target's root */
};

static bool read_identity(struct socket_owner *t, struct error *err)
{
    struct proc_status status;
    if (!proc_file_status(t->pid, &status, err))
        return false;
    socket_keys_of(t->pid, (uint32_t)status.ns_pid, t->start_ticks, &t->keys);
    t->uid = status.fs_uid;
    t->gid = status.fs_gid;
    return true;
}

/* The environment the target was started with: what it set since does not move its socket. */
static bool read_folder(struct socket_owner *t, struct buffer *scratch, struct error *err)
{
    struct span value = { 0 };
    snprintf(t->folder, sizeof t->folder, "/tmp");
    if (!proc_file_read(t->pid, "environ", scratch, err))
        return false;
    if (!procfs_environ_find(buffer_span(scratch), "TMPDIR", &value) || value.size == 0)
        return true;
    if (value.data[0] != '/' || value.size >= sizeof t->folder)
        return error_set(err, ERROR_UNSUPPORTED, "the TMPDIR of process %d, '%.*s', is not usable",
                         (int)t->pid, (int)(value.size < 100 ? value.size : 100), (const char *)value.data);
    memcpy(t->folder, value.data, value.size);
    t->folder[value.size] = 0;
    return true;
}

static bool has_ended(pid_t pid, struct error *err)
{
    return error_set(err, ERROR_TARGET, "process %d has ended; another one has its id now", (int)pid);
}

static bool read_owner(pid_t pid, uint64_t start_ticks, struct socket_owner *out, struct error *err)
{
    struct buffer scratch;
    buffer_init(&scratch, PROC_FILE_MAX);
    *out = (struct socket_owner){ .pid = pid };
    bool ok = proc_file_start_ticks(pid, &out->start_ticks, err) && read_identity(out, err) &&
              read_folder(out, &scratch, err);
    buffer_done(&scratch);
    if (ok && start_ticks && start_ticks != out->start_ticks)
        return has_ended(pid, err);
    return ok;
}

/* Whether the folder has a socket with the target's pid, but an earlier process's start time. */
static bool has_stale_socket(int root_fd, const struct socket_owner *t)
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
    int length = snprintf(start, sizeof start, "dotnet-diagnostic-%" PRIu32 "-", t->keys.ns_pid);
    bool found = false;
    struct dirent *entry;
    for (unsigned i = 0; !found && i < FOLDER_ENTRIES_MAX && (entry = readdir(folder)); i++)
        found = strncmp(entry->d_name, start, (size_t)length) == 0;
    closedir(folder);
    return found;
}

static bool no_socket(int root_fd, const struct socket_owner *t, struct error *err)
{
    if (has_stale_socket(root_fd, t)) {
        error_set(err, ERROR_UNSUPPORTED,
                  "process %d has no diagnostics socket; one in '%s' is of an earlier process", (int)t->pid,
                  t->folder);
        return error_hint(err, "its /proc/PID/environ may name another TMPDIR than it uses");
    }
    error_set(err, ERROR_UNSUPPORTED, "process %d has no .NET diagnostics socket in '%s'", (int)t->pid,
              t->folder);
    return error_hint(err, "ask again where it has just started; clrperf doctor -p %d says why there is none",
                      (int)t->pid);
}

/* A handle of the socket: it stays the same one even when its name is moved. */
static bool open_socket(const struct socket_owner *t, int *out_fd, struct error *err)
{
    AUTO_FD int root_fd = -1;
    if (!target_root_open(t->pid, &root_fd, err))
        return false;
    char path[sizeof t->folder + SOCKET_NAME_MAX];
    struct own_user own = target_user_become(t->uid, t->gid);
    bool ok = socket_keys_open(&t->keys, root_fd, t->folder, path, sizeof path, out_fd, err);
    if (!ok && err && err->os_error == ENOENT)
        no_socket(root_fd, t, err);
    target_user_leave(&own);
    return ok;
}

static bool connect_handle(int handle, const struct socket_owner *t, struct runtime_socket_wait wait,
                           int *out_fd, struct error *err)
{
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_system(err, errno, "cannot make a socket");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", handle);
    struct waiting waiting = wait_begin(wait);
    for (;;) {
        struct own_user own = target_user_become(t->uid, t->gid);
        int result = connect(fd, (const struct sockaddr *)&address, sizeof address);
        int e = errno;
        target_user_leave(&own);
        if (result == 0)
            break;
        if (e != EAGAIN && e != EINTR) {
            error_system(err, e, "cannot connect to the .NET runtime of process %d", (int)t->pid);
            if (e == EACCES || e == EPERM)
                error_hint(err, "run as the target's user, or as root");
            return false;
        }
        if (!wait_left_ms(&waiting)) { /* its queue of connections stays full */
            error_set(err, ERROR_UNSUPPORTED, "the .NET runtime of process %d takes no connection",
                      (int)t->pid);
            return timed_out(err);
        }
        nanosleep(&(struct timespec){ .tv_nsec = 5 * NS_PER_MS }, NULL);
    }
    *out_fd = take_fd(&fd);
    return true;
}

/* The socket's name proves nothing: whoever listens there must be the target itself. */
static bool check_peer(int fd, const struct socket_owner *t, struct error *err)
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
    uint64_t start_ticks;
    return proc_file_start_ticks(t->pid, &start_ticks, err) &&
           (start_ticks == t->start_ticks || has_ended(t->pid, err));
}

bool runtime_socket_connect(pid_t pid, uint64_t start_ticks, struct runtime_socket_wait wait, int *out_fd,
                            struct error *err)
{
    struct socket_owner target;
    if (!read_owner(pid, start_ticks, &target, err))
        return false;
    AUTO_FD int handle = -1;
    AUTO_FD int fd = -1;
    if (!open_socket(&target, &handle, err) || !connect_handle(handle, &target, wait, &fd, err) ||
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
        return error_set(err, ERROR_UNSUPPORTED, "the .NET runtime took only a part of a request");
    return true;
}

/* Why nobody answers: the peer is who listens there, the runtime's process. */
static bool no_answer(int fd, struct error *err)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || !proc_file_is_stopped(peer.pid)) {
        error_set(err, ERROR_UNSUPPORTED, "the .NET runtime did not answer in time");
        return timed_out(err);
    }
    error_set(err, ERROR_UNSUPPORTED, "the .NET runtime did not answer: process %d is stopped",
              (int)peer.pid);
    error_hint(err, "let it go on with: kill -CONT %d", (int)peer.pid);
    return timed_out(err);
}

static bool receive_exactly(int fd, uint8_t *into, size_t size, const struct waiting *waiting,
                            struct error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(fd, into + done, size - done, MSG_DONTWAIT);
        if (got == 0)
            return error_set(err, ERROR_UNSUPPORTED,
                             "the .NET runtime closed the connection without an answer");
        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return error_system(err, errno, "cannot read the answer of the .NET runtime");
        unsigned left_ms = wait_left_ms(waiting);
        if (!left_ms)
            return no_answer(fd, err);
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        poll(&ready, 1, (int)left_ms);
    }
    return true;
}

bool runtime_socket_receive(int fd, struct runtime_socket_wait wait, struct buffer *content,
                            bool *out_is_error, struct error *err)
{
    struct waiting waiting = wait_begin(wait);
    uint8_t header[IPC_HEADER_BYTES];
    uint32_t size;
    bool is_error;
    if (!receive_exactly(fd, header, sizeof header, &waiting, err) ||
        !ipc_read_header(span_of(header, sizeof header), &size, &is_error, err))
        return false;
    buffer_clear(content);
    uint8_t *room = buffer_reserve(content, size);
    if (size && !room)
        return error_set(err, ERROR_LIMIT, "an answer of %" PRIu32 " bytes", size);
    if (!receive_exactly(fd, room, size, &waiting, err))
        return false;
    content->size = size;
    *out_is_error = is_error;
    return true;
}
