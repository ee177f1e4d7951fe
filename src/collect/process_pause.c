#include "collect/process_pause.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/helper_process.h"
#include "collect/proc_file.h"
#include "collect/traced_thread.h"

enum {
    PASSES_MAX = 32,
    TRACER_LOOK_MS = 2,
    REFUSALS_MAX = 4,   /* without anybody seen who traces */
    HELD_WAIT_MS = 100, /* for a thread that somebody traces, while others stand still for us */
};

/* What the child says: first that they stand still, or why not; then how long they did. */
struct pause_message {
    bool ok;
    int os_error;
    uint64_t stopped_ns;
};

struct process_pause {
    pid_t child;
    int socket;
};

struct held_thread {
    pid_t tid;
    int signal_number;
    bool stopped;
};

struct holding {
    pid_t pid;
    struct held_thread *threads;
    size_t count, capacity;
    int os_error;
    pid_t refused; /* a thread that may not be held, or 0 */
    uint64_t begin_ns;
};

static bool is_held(const struct holding *h, pid_t tid)
{
    for (size_t i = h->count; i > 0; i--)
        if (h->threads[i - 1].tid == tid)
            return true;
    return false;
}

/* One that is ending is left to that. */
static void hold(struct holding *h, pid_t tid)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        h->os_error = errno;
        if (errno != ESRCH && !proc_file_has_ended(tid))
            h->refused = tid;
        return;
    }
    if (h->count == 0)
        h->begin_ns = clock_monotonic_ns();
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    h->threads = mem_grow(h->threads, &h->capacity, h->count + 1, sizeof *h->threads);
    h->threads[h->count++] = (struct held_thread){ .tid = tid };
}

/* Holds the threads that are not held yet, and returns how many those were. Where the first may not be,
 * nobody stands still while that is waited for. */
static size_t hold_new(struct holding *h)
{
    char folder[64];
    size_t had = h->count;
    h->refused = 0;
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)h->pid);
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (h->count || !h->refused) && (entry = readdir(dir));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && h->count < PROCESS_PAUSE_THREADS_MAX && !is_held(h, tid))
            hold(h, tid);
    }
    if (dir)
        closedir(dir);
    return h->count - had;
}

/* Whether whoever traces a thread may still let go of it: others who stop threads for a moment do. Who has
 * done so since cannot be seen any more. */
static bool awaits_tracer(const struct holding *h, unsigned refusals, uint64_t begin_ns)
{
    struct proc_status status;
    bool traced = proc_file_status(h->refused, &status, NULL) && status.tracer;
    unsigned wait_ms = h->count ? HELD_WAIT_MS : PROCESS_PAUSE_TRACER_MS;
    if (!(traced || refusals < REFUSALS_MAX) ||
        clock_monotonic_ns() - begin_ns >= wait_ms * UINT64_C(1000000))
        return false;
    poll(NULL, 0, TRACER_LOOK_MS);
    return true;
}

/* A thread that runs may start others, until it stands still itself. */
static bool hold_all(struct holding *h)
{
    uint64_t begin_ns = clock_monotonic_ns();
    unsigned refusals = 0;
    for (unsigned pass = 0; pass < PASSES_MAX;) {
        size_t first = h->count, fresh = hold_new(h);
        for (size_t i = first; i < h->count; i++)
            h->threads[i].stopped = traced_thread_wait(h->threads[i].tid, &h->threads[i].signal_number);
        if (h->count && first == 0)
            begin_ns = clock_monotonic_ns();
        if (fresh == 0 && !h->refused)
            return h->count > 0;
        if (fresh == 0 && !awaits_tracer(h, ++refusals, begin_ns))
            return false;
        pass += fresh > 0;
    }
    h->os_error = EAGAIN;
    return false;
}

static void release_all(const struct holding *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->threads[i].stopped)
            traced_thread_release(h->threads[i].tid, h->threads[i].signal_number);
}

static _Noreturn void serve(int socket, pid_t pid, unsigned at_most_ms)
{
    sigset_t all;
    struct holding h = { .pid = pid };
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    helper_process_begin(socket);
    bool ok = hold_all(&h);
    struct pause_message message = { ok, h.os_error ? h.os_error : ESRCH, 0 };
    struct pollfd asked = { .fd = socket, .events = POLLIN };
    uint8_t byte;
    if (write(socket, &message, sizeof message) == (ssize_t)sizeof message && ok)
        message.ok = poll(&asked, 1, (int)at_most_ms) > 0 && read(socket, &byte, 1) == 1;
    release_all(&h);
    message.stopped_ns = clock_monotonic_ns() - h.begin_ns;
    _exit(write(socket, &message, sizeof message) != (ssize_t)sizeof message);
}

static bool receive(int socket, unsigned deadline_ms, struct pause_message *out)
{
    struct pollfd answer = { .fd = socket, .events = POLLIN };
    int ready;
    do
        ready = poll(&answer, 1, (int)deadline_ms);
    while (ready < 0 && errno == EINTR);
    return ready > 0 && read(socket, out, sizeof *out) == (ssize_t)sizeof *out;
}

static bool refused(pid_t pid, int os_error, struct error *err)
{
    if (os_error == ESRCH)
        return error_set(err, ERROR_TARGET, "process %d is gone", (int)pid);
    error_system(err, os_error, "cannot stop process %d for a moment", (int)pid);
    if (os_error == EPERM)
        error_hint(err, "run as the same user with kernel.yama.ptrace_scope = 0, or with sudo; "
                        "a debugger or strace on the process must let go of it first");
    return false;
}

static void close_pause(struct process_pause *pause)
{
    helper_process_end(pause->child);
    close(pause->socket);
    free(pause);
}

bool process_pause_begin(pid_t pid, unsigned at_most_ms, struct process_pause **out, struct error *err)
{
    int pair[2];
    struct pause_message message;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return error_system(err, errno, "cannot start a child process");
    pid_t child = fork();
    if (child == 0)
        serve(pair[1], pid, at_most_ms);
    int os_error = errno;
    close(pair[1]);
    if (child < 0) {
        close(pair[0]);
        return error_system(err, os_error, "cannot start a child process");
    }
    struct process_pause *pause = mem_alloc(1, sizeof *pause);
    *pause = (struct process_pause){ child, pair[0] };
    bool answered = receive(pair[0], PROCESS_PAUSE_TRACER_MS + PROCESS_PAUSE_STOP_MS, &message);
    if (answered && message.ok) {
        *out = pause;
        return true;
    }
    close_pause(pause);
    return answered ? refused(pid, message.os_error, err)
                    : error_set(err, ERROR_LIMIT,
                                "process %d did not stop within %d ms: a thread of it waits in the kernel",
                                (int)pid, PROCESS_PAUSE_STOP_MS);
}

bool process_pause_end(struct process_pause *pause, uint64_t *out_stopped_ns)
{
    struct pause_message message = { 0 };
    uint8_t byte = 0;
    bool asked = send(pause->socket, &byte, 1, MSG_NOSIGNAL) == 1;
    bool answered = receive(pause->socket, PROCESS_PAUSE_STOP_MS, &message);
    *out_stopped_ns = message.stopped_ns;
    close_pause(pause);
    return asked && answered && message.ok;
}
