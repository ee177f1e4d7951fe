#include "collect/diagnostic_port.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/thread.h"
#include "clr/diagnostics_ipc.h"
#include "collect/runtime_socket.h"

enum {
    ADVERTISE_BYTES = 34,
    ADVERTISE_MS = 1000, /* the runtime sends it at once, in one piece */
    RESUME_MS = 5000,
    CALLERS_MAX = 256,
    BACKLOG = 64,
};

struct diagnostic_port {
    int fd;
    int wake[2]; /* ends the thread */
    char folder[64], path[108];
    int kept[CALLERS_MAX];
    size_t kept_count;
    uint8_t resumed[CALLERS_MAX][16]; /* cookies: when they call again there is nothing to be done */
    size_t resumed_count;
    pthread_t thread;
    bool serving;
};

static bool make_path(struct diagnostic_port *p, struct error *err)
{
    snprintf(p->folder, sizeof p->folder, "/tmp/clrperf-port-XXXXXX");
    if (!mkdtemp(p->folder)) {
        p->folder[0] = '\0';
        return error_system(err, errno, "cannot make a folder for a diagnostic port");
    }
    snprintf(p->path, sizeof p->path, "%s/port", p->folder);
    return true;
}

static bool listen_at(struct diagnostic_port *p, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    memcpy(address.sun_path, p->path, sizeof address.sun_path);
    p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->fd < 0)
        return error_system(err, errno, "cannot make a socket");
    mode_t before = umask(0077);
    bool bound = bind(p->fd, (const struct sockaddr *)&address, sizeof address) == 0;
    int e = errno;
    umask(before);
    if (!bound) {
        p->path[0] = '\0'; /* not ours to remove */
        return error_system(err, e, "cannot listen at '%s'", address.sun_path);
    }
    return listen(p->fd, BACKLOG) == 0 || error_system(err, errno, "cannot listen at '%s'", p->path);
}

bool diagnostic_port_open(const char *path, struct diagnostic_port **out, struct error *err)
{
    struct diagnostic_port *p = mem_alloc(1, sizeof *p);
    p->fd = p->wake[0] = p->wake[1] = -1;
    bool ok = true;
    if (!path)
        ok = make_path(p, err);
    else if (strlen(path) >= sizeof p->path)
        ok = error_set(err, ERROR_USAGE, "'%s' is too long for the path of a socket", path);
    else
        snprintf(p->path, sizeof p->path, "%s", path);
    if (!ok || !listen_at(p, err)) {
        diagnostic_port_close(p);
        return false;
    }
    *out = p;
    return true;
}

const char *diagnostic_port_path(const struct diagnostic_port *p)
{
    return p->path;
}

int diagnostic_port_fd(const struct diagnostic_port *p)
{
    return p->fd;
}

/* "ADVR_V1" and a NUL, a cookie of 16 bytes, the pid as the runtime sees it, 2 bytes of nothing. */
static bool read_advertise(int fd, uint8_t cookie[16])
{
    uint8_t bytes[ADVERTISE_BYTES] = { 0 };
    uint64_t deadline_ns = clock_monotonic_ns() + ADVERTISE_MS * UINT64_C(1000000), now_ns;
    for (size_t done = 0; done < sizeof bytes;) {
        ssize_t got = recv(fd, bytes + done, sizeof bytes - done, MSG_DONTWAIT);
        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        now_ns = clock_monotonic_ns();
        if (got == 0 || (errno != EAGAIN && errno != EINTR) || now_ns >= deadline_ns)
            return false;
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        poll(&wait, 1, (int)((deadline_ns - now_ns) / 1000000) + 1);
    }
    memcpy(cookie, bytes + 8, 16);
    return memcmp(bytes, "ADVR_V1", 8) == 0;
}

static void keep(struct diagnostic_port *p, int fd)
{
    if (p->kept_count < CALLERS_MAX)
        p->kept[p->kept_count++] = fd;
    else
        close(fd);
}

static bool was_resumed(const struct diagnostic_port *p, const uint8_t cookie[16])
{
    for (size_t i = 0; i < p->resumed_count && i < CALLERS_MAX; i++)
        if (memcmp(p->resumed[i], cookie, 16) == 0)
            return true;
    return false;
}

bool diagnostic_port_take(struct diagnostic_port *p, struct diagnostic_caller *out)
{
    for (;;) {
        int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return false;
        struct diagnostic_caller caller = { .fd = fd };
        struct ucred peer = { 0 };
        socklen_t size = sizeof peer;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || !read_advertise(fd, caller.cookie)) {
            close(fd);
            continue;
        }
        if (was_resumed(p, caller.cookie)) {
            keep(p, fd);
            continue;
        }
        caller.pid = peer.pid;
        *out = caller;
        return true;
    }
}

void diagnostic_port_keep(struct diagnostic_port *p, const struct diagnostic_caller *caller)
{
    keep(p, caller->fd);
}

bool diagnostic_port_resume(struct diagnostic_port *p, const struct diagnostic_caller *caller,
                            struct error *err)
{
    struct buffer request, answer;
    bool is_error = false;
    buffer_init(&request, IPC_MESSAGE_MAX);
    buffer_init(&answer, IPC_MESSAGE_MAX);
    ipc_append_plain(&request, IPC_RESUME_RUNTIME);
    bool ok = runtime_socket_send(caller->fd, buffer_span(&request), err) &&
              runtime_socket_receive(caller->fd, RESUME_MS, &answer, &is_error, err);
    if (ok && is_error)
        ok = error_set(err, ERROR_TARGET, "the .NET runtime of process %d does not let itself be resumed",
                       (int)caller->pid);
    buffer_done(&request);
    buffer_done(&answer);
    close(caller->fd);
    memcpy(p->resumed[p->resumed_count++ % CALLERS_MAX], caller->cookie, sizeof caller->cookie);
    return ok;
}

static void *serve(void *user)
{
    struct diagnostic_port *p = user;
    for (;;) {
        struct pollfd polls[] = { { .fd = p->fd, .events = POLLIN }, { .fd = p->wake[0], .events = POLLIN } };
        poll(polls, ARRAY_LEN(polls), -1);
        if (polls[1].revents)
            return NULL;
        struct diagnostic_caller caller;
        while (diagnostic_port_take(p, &caller))
            diagnostic_port_resume(p, &caller, NULL);
    }
}

void diagnostic_port_let_all_go(struct diagnostic_port *p)
{
    if (p && !p->serving && pipe2(p->wake, O_CLOEXEC) == 0)
        p->serving = thread_start(&p->thread, serve, p);
}

void diagnostic_port_close(struct diagnostic_port *p)
{
    if (!p)
        return;
    if (p->serving && write(p->wake[1], "", 1) == 1)
        pthread_join(p->thread, NULL);
    for (size_t i = 0; i < ARRAY_LEN(p->wake); i++)
        if (p->wake[i] >= 0)
            close(p->wake[i]);
    for (size_t i = 0; i < p->kept_count; i++)
        close(p->kept[i]);
    if (p->fd >= 0)
        close(p->fd);
    if (p->path[0])
        unlink(p->path);
    if (p->folder[0])
        rmdir(p->folder);
    free(p);
}
