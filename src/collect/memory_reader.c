#include "collect/memory_reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/child_files.h"

bool memory_reader_init(struct memory_reader *reader, pid_t target)
{
    void *memory =
        mmap(NULL, sizeof *reader->batch, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    *reader = (struct memory_reader){ .target = target, .socket = -1, .batch = memory };
    return true;
}

/* As many pieces as one call takes, from batch->next on; moves `next` past what was read or refused. */
static void read_some(pid_t target, struct memory_batch *batch, size_t *offset)
{
    struct iovec local[MEMORY_READER_PIECES] = { { 0 } }, remote[MEMORY_READER_PIECES] = { { 0 } };
    uint32_t first = batch->next, count = batch->one_by_one ? 1 : batch->count - first;
    size_t at = *offset;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = batch->pieces[first + i].size;
        local[i] = (struct iovec){ batch->bytes + at, size };
        remote[i] = (struct iovec){ (void *)(uintptr_t)batch->pieces[first + i].addr, size };
        at += size;
    }
    ssize_t got = process_vm_readv(target, local, count, remote, count, 0);
    if (got < 0)
        batch->os_error = errno;
    size_t left = got > 0 ? (size_t)got : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = batch->pieces[first + i].size;
        uint32_t part = left < size ? (uint32_t)left : size;
        batch->pieces[first + i].got = part;
        left -= part;
        *offset += size;
        batch->next = first + i + 1;
        if (part < size)
            return;
    }
}

static _Noreturn void serve(pid_t target, int socket, struct memory_batch *batch)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    child_files_close_but(socket);
    for (uint8_t byte; read(socket, &byte, 1) == 1;) {
        size_t offset = 0;
        for (uint32_t i = 0; i < batch->next; i++)
            offset += batch->pieces[i].size;
        while (batch->next < batch->count)
            read_some(target, batch, &offset);
        if (write(socket, &byte, 1) != 1)
            break;
    }
    _exit(0);
}

static bool start(struct memory_reader *reader)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    pid_t child = fork();
    if (child == 0)
        serve(reader->target, pair[1], reader->batch);
    close(pair[1]);
    if (child < 0) {
        close(pair[0]);
        return false;
    }
    reader->child = child;
    reader->socket = pair[0];
    return true;
}

static void stop(struct memory_reader *reader)
{
    if (reader->child <= 0)
        return;
    kill(reader->child, SIGKILL);
    while (waitpid(reader->child, NULL, 0) < 0 && errno == EINTR)
        ;
    close(reader->socket);
    reader->child = 0;
    reader->socket = -1;
}

void memory_reader_done(struct memory_reader *reader)
{
    stop(reader);
    if (reader->batch)
        munmap(reader->batch, sizeof *reader->batch);
    reader->batch = NULL;
}

static bool answered(int socket, int deadline_ms)
{
    uint8_t byte = 0;
    struct pollfd answer = { .fd = socket, .events = POLLIN };
    int ready;
    if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1)
        return false;
    do
        ready = poll(&answer, 1, deadline_ms);
    while (ready < 0 && errno == EINTR);
    return ready > 0 && read(socket, &byte, 1) == 1;
}

bool memory_reader_run(struct memory_reader *reader, int deadline_ms)
{
    if (reader->child <= 0 && !start(reader))
        return false;
    if (answered(reader->socket, deadline_ms))
        return true;
    stop(reader);
    return false;
}
