#include "cli/record_port.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/pidfd.h"
#include "cli/message.h"
#include "collect/event_stream.h"

enum { LOOK_MS = 100, FORGET_MS = 1000 };

/* PATH, PATH,listen: true; PATH,connect: false. Like dotnet-trace we listen when nothing is said. */
static bool split_port(const char *text, char path[108], bool *out_listen, struct error *err)
{
    size_t size = strcspn(text, ",");
    const char *how = text[size] ? text + size + 1 : "listen";
    *out_listen = strcmp(how, "listen") == 0;
    if ((!*out_listen && strcmp(how, "connect") != 0) || size == 0 || size >= 108) {
        error_set(err, ERROR_USAGE, "'%s' is no diagnostic port", text);
        return error_hint(err, "give the path of a socket, and behind a comma listen or connect");
    }
    memcpy(path, text, size);
    path[size] = '\0';
    return true;
}

bool record_port_open(const struct record_values *v, bool for_command, struct diagnostic_port **out,
                      struct error *err)
{
    char path[108];
    bool listens = false;
    *out = NULL;
    if (v->port && !split_port(v->port, path, &listens, err))
        return false;
    if (listens)
        return diagnostic_port_open(path, out, err);
    return !for_command || diagnostic_port_open(NULL, out, err);
}

struct launch_options record_port_launch(const struct record_values *v, const struct diagnostic_port *port)
{
    return (struct launch_options){
        .diagnostic_port = port ? diagnostic_port_path(port) : NULL,
        .silent = v->show_child_io == SWITCH_OFF,
        .apart = v->json && v->show_child_io == SWITCH_NOT_GIVEN,
    };
}

/* Who listens at a runtime's own socket. */
static bool server_of(const char *path, pid_t *out, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    memcpy(address.sun_path, path, strlen(path));
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return error_system(err, errno, "cannot connect to '%s'", path);
    if (peer.pid <= 0)
        return error_set(err, ERROR_TARGET, "'%s' is served by a process of another pid namespace", path);
    *out = peer.pid;
    return true;
}

bool record_port_wait(struct diagnostic_port *port, pid_t child, const volatile sig_atomic_t *stopped,
                      struct diagnostic_caller *out, struct error *err)
{
    AUTO_FD int pidfd = child ? pidfd_of(child) : -1;
    struct pollfd polls[] = { { .fd = diagnostic_port_fd(port), .events = POLLIN },
                              { .fd = pidfd, .events = POLLIN } };
    while (!diagnostic_port_take(port, out)) {
        if (*stopped)
            return error_set(err, ERROR_TARGET, "stopped before a .NET runtime called");
        if (polls[1].revents)
            return error_set(err, ERROR_TARGET, "the command ended, and no .NET runtime had called");
        poll(polls, 2, LOOK_MS);
    }
    return true;
}

bool record_port_target(const struct record_values *v, struct diagnostic_port *port,
                        const volatile sig_atomic_t *stopped, struct diagnostic_caller *caller, pid_t *out,
                        struct error *err)
{
    char path[108];
    bool listens;
    *caller = (struct diagnostic_caller){ .fd = -1 };
    if (!split_port(v->port, path, &listens, err))
        return false;
    if (!listens)
        return server_of(path, out, err);
    if (!v->quiet)
        message_note("waiting for a .NET runtime to call at %s", path);
    if (!record_port_wait(port, 0, stopped, caller, err))
        return false;
    *out = caller->pid;
    return true;
}

bool record_port_resume(const struct record_values *v, struct diagnostic_port *port,
                        const struct diagnostic_caller *caller, struct error *err)
{
    if (!v->port)
        event_peer_hand_down_port(
            &(struct event_peer){ caller->pid, caller->start_ticks, FORGET_MS, FORGET_MS }, NULL);
    if (v->resume != SWITCH_OFF)
        return diagnostic_port_resume(port, caller, err);
    diagnostic_port_keep(port, caller);
    return true;
}
