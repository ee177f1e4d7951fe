#include "collect/diagnostic_port.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/thread.h"
#include "clr/diagnostics_ipc.h"
#include "collect/proc_file.h"
#include "collect/runtime_socket.h"

enum {
    ADVERTISE_BYTES = 34,
    ADVERTISE_MS = 5000, /* the runtime sends it at once, in one piece; nobody waits for it meanwhile */
    RESUME_MS = 5000,
    REST_MS = 100, /* when no more files can be open: until the next try */
    CALLERS_MAX = 256,
    SILENT_MAX = 64, /* connections that have not said yet who they are */
    BACKLOG = 64,
};

#define MS_NS UINT64_C(1000000)

/* One that has connected and not advertised to the end. */
struct connection {
    int fd;
    uint64_t until_ns; /* then it is dropped */
    size_t size;       /* of what has come */
    uint8_t bytes[ADVERTISE_BYTES];
};

struct diagnostic_port {
    int fd;
    int ready;   /* an epoll of the socket, of those that have not advertised, and of ends of those kept */
    int wake[2]; /* ends the thread */
    char folder[64], path[108];
    uint64_t rests_until_ns;              /* no call is taken before; 0: they are */
    struct connection silent[SILENT_MAX]; /* the oldest first */
    size_t silent_count;
    int kept[CALLERS_MAX];
    size_t kept_count;
    uint8_t resumed[CALLERS_MAX][16]; /* cookies: when they call again there is nothing to be done */
    size_t resumed_count;
    pthread_t thread;
    bool serving;
};

static bool watch(const struct diagnostic_port *p, int how, int fd, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.fd = fd };
    return epoll_ctl(p->ready, how, fd, &event) == 0;
}

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
        error_system(err, e, "cannot listen at '%s'", address.sun_path);
        if (e == EADDRINUSE)
            error_hint(err, "who listens there has it, or was killed and left it behind: choose another "
                            "path, or remove that file");
        return false;
    }
    p->ready = epoll_create1(EPOLL_CLOEXEC);
    return (listen(p->fd, BACKLOG) == 0 && p->ready >= 0 && watch(p, EPOLL_CTL_ADD, p->fd, EPOLLIN)) ||
           error_system(err, errno, "cannot listen at '%s'", p->path);
}

bool diagnostic_port_open(const char *path, struct diagnostic_port **out, struct error *err)
{
    struct diagnostic_port *p = mem_alloc(1, sizeof *p);
    p->fd = p->ready = p->wake[0] = p->wake[1] = -1;
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
    return p->ready;
}

static void keep(struct diagnostic_port *p, int fd)
{
    if (p->kept_count < CALLERS_MAX && watch(p, EPOLL_CTL_ADD, fd, EPOLLRDHUP))
        p->kept[p->kept_count++] = fd;
    else
        close(fd);
}

static void forget_kept(struct diagnostic_port *p, int fd)
{
    for (size_t i = 0; i < p->kept_count; i++) {
        if (p->kept[i] != fd)
            continue;
        p->kept[i] = p->kept[--p->kept_count];
        close(fd);
        return;
    }
}

static bool was_resumed(const struct diagnostic_port *p, const uint8_t cookie[16])
{
    for (size_t i = 0; i < p->resumed_count && i < CALLERS_MAX; i++)
        if (memcmp(p->resumed[i], cookie, 16) == 0)
            return true;
    return false;
}

/* It is no longer among those that say nothing. */
static void take_out(struct diagnostic_port *p, size_t i)
{
    watch(p, EPOLL_CTL_DEL, p->silent[i].fd, 0);
    memmove(&p->silent[i], &p->silent[i + 1], (--p->silent_count - i) * sizeof *p->silent);
}

static void drop(struct diagnostic_port *p, size_t i)
{
    int fd = p->silent[i].fd;
    take_out(p, i);
    close(fd);
}

/* Without a file to be had the call stays where it is, and would be announced for ever. */
static void rest(struct diagnostic_port *p, uint64_t now_ns)
{
    p->rests_until_ns = now_ns + REST_MS * MS_NS;
    watch(p, EPOLL_CTL_MOD, p->fd, 0);
}

/* Who is silent for longest makes room. */
static void accept_all(struct diagnostic_port *p, uint64_t now_ns)
{
    if (now_ns < p->rests_until_ns)
        return;
    if (p->rests_until_ns)
        watch(p, EPOLL_CTL_MOD, p->fd, EPOLLIN);
    p->rests_until_ns = 0;
    for (unsigned i = 0; i < BACKLOG; i++) {
        int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                rest(p, now_ns);
            return;
        }
        if (p->silent_count == SILENT_MAX)
            drop(p, 0);
        p->silent[p->silent_count++] =
            (struct connection){ .fd = fd, .until_ns = now_ns + ADVERTISE_MS * MS_NS };
        watch(p, EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

/* Those that were kept end one day, and their places are for others. */
static void forget_ended(struct diagnostic_port *p)
{
    struct epoll_event events[SILENT_MAX];
    int count = epoll_wait(p->ready, events, ARRAY_LEN(events), 0);
    for (int i = 0; i < count; i++)
        if (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            forget_kept(p, events[i].data.fd);
}

enum advertised { ADVERTISED_NOT_YET, ADVERTISED_WELL, ADVERTISED_NEVER };

/* "ADVR_V1" and a NUL, a cookie of 16 bytes, the pid as the runtime sees it, 2 bytes of nothing. */
static enum advertised read_advertise(struct connection *c)
{
    ssize_t got;
    do
        got = recv(c->fd, c->bytes + c->size, sizeof c->bytes - c->size, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 && errno == EAGAIN ? ADVERTISED_NOT_YET : ADVERTISED_NEVER;
    c->size += (size_t)got;
    if (c->size < sizeof c->bytes)
        return ADVERTISED_NOT_YET;
    uint64_t pid = load_u64le(c->bytes + 24);
    return memcmp(c->bytes, "ADVR_V1", 8) == 0 && pid > 0 && pid <= INT32_MAX ? ADVERTISED_WELL
                                                                              : ADVERTISED_NEVER;
}

/*
 * Who it is. 0 is somebody we cannot see, in a pid namespace that is not below ours. Where the connection is
 * still there behind the look at /proc, that was no later process with the same number.
 */
static bool identify(const struct connection *c, struct diagnostic_caller *out)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;
    *out = (struct diagnostic_caller){ .fd = c->fd };
    memcpy(out->cookie, c->bytes + 8, sizeof out->cookie);
    if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0 ||
        !proc_file_start_ticks(peer.pid, &out->start_ticks, NULL))
        return false;
    out->pid = peer.pid;
    struct pollfd end = { .fd = c->fd, .events = POLLRDHUP };
    int ready;
    do /* a signal says nothing of the caller */
        ready = poll(&end, 1, 0);
    while (ready < 0 && errno == EINTR);
    return ready == 0;
}

bool diagnostic_port_take(struct diagnostic_port *p, struct diagnostic_caller *out)
{
    uint64_t now_ns = clock_monotonic_ns();
    forget_ended(p);
    accept_all(p, now_ns);
    for (size_t i = 0; i < p->silent_count;) {
        struct connection *c = &p->silent[i];
        struct diagnostic_caller caller;
        enum advertised said = read_advertise(c);
        if (said == ADVERTISED_NOT_YET && now_ns < c->until_ns) {
            i++;
        } else if (said != ADVERTISED_WELL || !identify(c, &caller)) {
            drop(p, i);
        } else {
            take_out(p, i);
            if (!was_resumed(p, caller.cookie)) {
                *out = caller;
                return true;
            }
            keep(p, caller.fd);
        }
    }
    return false;
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
              runtime_socket_receive(caller->fd, (struct runtime_socket_wait){ RESUME_MS, NULL }, &answer,
                                     &is_error, err);
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
        struct pollfd polls[] = { { .fd = p->ready, .events = POLLIN },
                                  { .fd = p->wake[0], .events = POLLIN } };
        poll(polls, ARRAY_LEN(polls), p->silent_count || p->rests_until_ns ? REST_MS : -1);
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
    for (size_t i = 0; i < p->silent_count; i++)
        close(p->silent[i].fd);
    for (size_t i = 0; i < p->kept_count; i++)
        close(p->kept[i]);
    if (p->ready >= 0)
        close(p->ready);
    if (p->fd >= 0)
        close(p->fd);
    if (p->path[0])
        unlink(p->path);
    if (p->folder[0])
        rmdir(p->folder);
    free(p);
}
