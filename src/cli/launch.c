#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/pidfd.h"
#include "cli/message.h"

static void launch_hide_io(void)
{
    AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
}

static _Noreturn void launch_child(const char *const *command, const struct launch_options *options,
                                   int release, int failure)
{
    char byte;
    ssize_t got;
    do
        got = read(release, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        _exit(127); /* the recorder gave up */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL); /* ignored is inherited, also over an exec */
    signal(SIGXFSZ, SIG_DFL);
    if (options && options->diagnostic_port)
        setenv("DOTNET_DiagnosticPorts", options->diagnostic_port, 1);
    if (options && options->silent)
        launch_hide_io();
    else if (options && options->apart)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(command[0], (char *const *)command);
    int e = errno;
    if (write(failure, &e, sizeof e) < 0)
        _exit(126);
    _exit(127);
}

bool launch_start(const char *const *command, const struct launch_options *options, struct launch *out,
                  struct error *err)
{
    int release[2] = { -1, -1 }, failure[2] = { -1, -1 };
    if (pipe2(release, O_CLOEXEC) < 0)
        return error_system(err, errno, "cannot start '%s'", command[0]);
    if (pipe2(failure, O_CLOEXEC) < 0) {
        int e = errno;
        close(release[0]);
        close(release[1]);
        return error_system(err, e, "cannot start '%s'", command[0]);
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(release[1]);
        close(failure[0]);
        launch_child(command, options, release[0], failure[1]);
    }
    int e = errno;
    close(release[0]);
    close(failure[1]);
    if (pid < 0) {
        close(release[1]);
        close(failure[0]);
        return error_system(err, e, "cannot start '%s'", command[0]);
    }
    *out = (struct launch){ pid, release[1], failure[0] };
    return true;
}

bool launch_started(struct launch *l, const char *name, struct error *err)
{
    int e = 0;
    ssize_t got;
    do
        got = read(l->failure_fd, &e, sizeof e);
    while (got < 0 && errno == EINTR);
    if (got == sizeof e) {
        error_system(err, e, "cannot run '%s'", name);
        if (err && e == ENOENT)
            error_hint(err, "give the full path, or check the spelling");
        else if (err && e == EACCES)
            error_hint(err, "it must be a file with the right to execute; for an assembly: dotnet app.dll");
        return false;
    }
    return true;
}

/* Until it has ended; a SIGTERM that came or comes is handed on to it. */
static void wait_and_pass_on(const struct launch *l, const volatile sig_atomic_t *stopped_by)
{
    AUTO_FD int pidfd = pidfd_of(l->pid);
    struct pollfd ended = { .fd = pidfd, .events = POLLIN };
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    /* let through only while ppoll() waits: none can slip in between the look and the wait */
    sigprocmask(SIG_BLOCK, &term, &before);
    for (bool told = false; pidfd >= 0;) {
        if (*stopped_by == SIGTERM && !told) {
            kill(l->pid, SIGTERM);
            told = true;
        }
        if (ppoll(&ended, 1, NULL, &before) > 0 || errno != EINTR)
            break;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Its exit code; ends it for us. */
static int launch_reap(struct launch *l)
{
    int status = 0;
    pid_t got;
    do
        got = waitpid(l->pid, &status, 0);
    while (got < 0 && errno == EINTR);
    close(l->release_fd);
    close(l->failure_fd);
    if (got < 0)
        return 1;
    l->killed_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return l->killed_by ? 128 + l->killed_by : WEXITSTATUS(status);
}

int launch_wait(struct launch *l, const volatile sig_atomic_t *stopped_by)
{
    wait_and_pass_on(l, stopped_by);
    return launch_reap(l);
}

/* A runtime sends its events some time after they happened, and a process that is killed sends no more. */
void launch_warn_killed(const struct launch *l, const char *name)
{
    if (l->killed_by)
        message_warning(
            "'%s' was ended by a signal (%s): what its runtime had not sent yet is missing, such as an "
            "exception that nobody caught",
            name, strsignal(l->killed_by));
}

void launch_abandon(struct launch *l)
{
    kill(l->pid, SIGKILL);
    launch_reap(l);
}
