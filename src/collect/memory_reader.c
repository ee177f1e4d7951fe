#include "collect/memory_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/memory.h"
#include "collect/helper_process.h"

/* One question follows another; the answer to one takes some microseconds. */
enum { CHILD_LOOKS_US = 20, PARENT_LOOKS_US = 20 };

bool memory_reader_init(struct memory_reader *reader)
{
    void *memory =
        mmap(NULL, sizeof *reader->batch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    *reader = (struct memory_reader){ .look_us = doorbell_look_us(PARENT_LOOKS_US), .batch = memory };
    return true;
}

/* Reads `count` pieces; those that follow one another are one to the kernel when `joined`. How many bytes. */
static size_t read_pieces(struct memory_batch *batch, uint32_t first, uint32_t count, bool joined,
                          size_t offset)
{
    struct iovec remote[MEMORY_READER_PIECES], local = { batch->bytes + offset, 0 };
    uint32_t parts = 0;
    for (uint32_t i = first; i < first + count; i++) {
        uint64_t addr = batch->pieces[i].addr;
        struct iovec *last = parts ? &remote[parts - 1] : NULL;
        if (joined && last && (uintptr_t)last->iov_base + last->iov_len == addr)
            last->iov_len += batch->pieces[i].size;
        else
            remote[parts++] = (struct iovec){ (void *)(uintptr_t)addr, batch->pieces[i].size };
        local.iov_len += batch->pieces[i].size;
    }
    ssize_t got = process_vm_readv(batch->target, &local, 1, remote, parts, 0);
    if (got < 0)
        batch->os_error = errno;
    return got > 0 ? (size_t)got : 0;
}

/* As many pieces as one call takes, from batch->next on; moves `next` past what was read or refused. */
static void read_some(struct memory_batch *batch, bool joined, size_t *offset)
{
    uint32_t first = batch->next, count = batch->one_by_one ? 1 : batch->count - first;
    size_t left = read_pieces(batch, first, count, joined, *offset);
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t size = batch->pieces[i].size;
        if (left < size && joined)
            return; /* by itself it may be there, all of it or a part */
        batch->pieces[i].got = left < size ? (uint32_t)left : size;
        left -= batch->pieces[i].got;
        *offset += size;
        batch->next = i + 1;
        if (batch->pieces[i].got < size)
            return;
    }
}

static void read_batch(struct memory_batch *batch)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < batch->next; i++)
        offset += batch->pieces[i].size;
    /* joined, until a piece is not there wholly, which is then found out by itself */
    for (bool joined = true; batch->next < batch->count; joined = !joined)
        read_some(batch, joined, &offset);
}

/* A page of the batch, which is read when it is not there yet; NULL: it cannot be. */
static const uint8_t *batch_page(struct memory_batch *batch, uint64_t addr)
{
    uint32_t i = 0;
    while (i < batch->count && batch->pieces[i].addr != addr)
        i++;
    const uint8_t *bytes = batch->bytes + (size_t)i * MEMORY_PAGE_BYTES;
    if (i == batch->count) {
        batch->pieces[i].addr = addr;
        batch->pieces[i].size = MEMORY_PAGE_BYTES;
        batch->pieces[i].got = (uint32_t)read_pieces(batch, i, 1, false, bytes - batch->bytes);
        batch->count++;
    }
    return batch->pieces[i].got == MEMORY_PAGE_BYTES ? bytes : NULL;
}

_Static_assert(2 * (MEMORY_PATH_STEPS_MAX + 1) * MEMORY_PAGE_BYTES <= MEMORY_READER_BYTES,
               "each place and what is read there may lie in two pages");

static bool peek_target(void *user, uint64_t addr, void *into, size_t size)
{
    size_t offset = addr % MEMORY_PAGE_BYTES;
    const uint8_t *bytes = batch_page(user, addr - offset);
    if (!bytes || size > MEMORY_PAGE_BYTES - offset)
        return false;
    memcpy(into, bytes + offset, size);
    return true;
}

static void follow(struct memory_batch *batch)
{
    batch->count = 0;
    memory_path_walk(&batch->path, peek_target, batch);
}

static void serve(void *user)
{
    struct memory_batch *batch = user;
    unsigned look_us = doorbell_look_us(CHILD_LOOKS_US);
    for (uint32_t heard = 0; doorbell_wait(&batch->asked, heard, look_us, -1); heard++) {
        if (batch->follows)
            follow(batch);
        else
            read_batch(batch);
        doorbell_ring(&batch->answered);
    }
}

static bool start(struct memory_reader *reader)
{
    if (reader->lost)
        return false;
    reader->asked = 0;
    reader->batch->asked = reader->batch->answered = (struct doorbell){ 0 };
    if (!helper_process_share(serve, reader->batch, &reader->child))
        reader->child = 0;
    return reader->child > 0;
}

static void stop(struct memory_reader *reader)
{
    if (reader->child <= 0)
        return;
    reader->lost = !helper_process_end(reader->child);
    reader->child = 0;
}

void memory_reader_start(struct memory_reader *reader)
{
    start(reader);
}

void memory_reader_finish(struct memory_reader *reader)
{
    if (reader->child > 0)
        doorbell_end(&reader->batch->asked);
}

void memory_reader_done(struct memory_reader *reader)
{
    stop(reader);
    if (reader->batch && !reader->lost)
        munmap(reader->batch, sizeof *reader->batch);
    reader->batch = NULL;
}

/* A child that has to be woken takes longer than it is worth to look. */
static bool ask(struct memory_reader *reader, int deadline_ms)
{
    struct memory_batch *batch = reader->batch;
    bool slept = doorbell_ring(&batch->asked);
    return doorbell_wait(&batch->answered, reader->asked++, slept ? 0 : reader->look_us, deadline_ms);
}

bool memory_reader_run(struct memory_reader *reader, int deadline_ms)
{
    if (reader->child <= 0 && !start(reader))
        return false;
    if (ask(reader, deadline_ms))
        return true;
    stop(reader);
    return false;
}
