#include "collect/live_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/memory_thread.h"
#include "base/own.h"
#include "base/pidfd.h"
#include "base/thread.h"
#include "collect/memory_reader.h"
#include "collect/proc_file.h"
#include "collect/process_mappings.h"

enum {
    NAMES_BYTES_MAX = 64 << 20,
    MAPPINGS_MAX = 1 << 20,
    THREAD_CHANGES_MAX = 64,
    FIRST_MAPPINGS = 32, /* one of them can be read, mostly */
    PART_BYTES_MAX = 1 << 18,
    /* Of less than so much all goes through the batch's first pages: to bring in the others, too, takes
     * longer than to ask more often. */
    MUCH_BYTES = 1 << 20,
    LITTLE_BATCH_BYTES = 1 << 16,
};

/* A list of mappings, whose rows and paths it owns. */
struct mapping_list {
    struct arena names;
    struct memory_mapping *rows;
    size_t count, capacity, most;
};

struct live_memory {
    struct memory view;
    struct memory_reader reader;
    pid_t pid;
    int pidfd;
    struct mapping_list mappings;
    unsigned hangs;
    uint64_t hung_ns; /* the last time */
    bool ended;
};

/* The number may be another process's by now: only what was read while the handle's process lived counts. */
bool live_memory_lives(const struct live_memory *live)
{
    return !pidfd_has_ended(live->pidfd);
}

/* Whether one more is one too many. */
static bool count_hang(struct live_memory *live)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - live->hung_ns >= LIVE_MEMORY_FORGET_MS * UINT64_C(1000000))
        live->hangs = 0;
    live->hung_ns = now_ns;
    return ++live->hangs >= LIVE_MEMORY_HANGS_MAX;
}

/* Runs the batch to its end, past pieces that hang; false when there is no use in going on. */
static bool run_batch(struct live_memory *live)
{
    struct memory_batch *batch = live->reader.batch;
    while (!memory_reader_run(&live->reader, LIVE_MEMORY_DEADLINE_MS)) {
        if (count_hang(live))
            return false;
        if (batch->one_by_one && batch->next < batch->count)
            batch->pieces[batch->next++].got = 0;
        batch->one_by_one = true;
        if (batch->next >= batch->count)
            break;
    }
    return live_memory_lives(live);
}

/* A place in a list of pieces. */
struct place {
    size_t piece;
    size_t offset;
};

static size_t batch_bytes(const struct memory_piece *pieces, size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count && all < MUCH_BYTES; i++)
        all += pieces[i].size < MUCH_BYTES ? pieces[i].size : MUCH_BYTES;
    return all < MUCH_BYTES ? LITTLE_BATCH_BYTES : MEMORY_READER_BYTES;
}

/* Fills `room` bytes of the batch from `at` on; returns the place behind what it asks for. */
static struct place fill_batch(struct memory_batch *batch, const struct memory_piece *pieces, size_t count,
                               struct place at, size_t room)
{
    batch->count = batch->next = 0;
    batch->os_error = 0;
    batch->one_by_one = false;
    while (at.piece < count && room && batch->count < MEMORY_READER_PIECES) {
        const struct memory_piece *p = &pieces[at.piece];
        size_t part = p->size - at.offset;
        if (part > PART_BYTES_MAX)
            part = PART_BYTES_MAX;
        if (part > room)
            part = room;
        batch->pieces[batch->count].addr = p->addr + at.offset;
        batch->pieces[batch->count].got = 0;
        batch->pieces[batch->count++].size = (uint32_t)part;
        room -= part;
        at.offset += part;
        if (at.offset == p->size)
            at = (struct place){ at.piece + 1, 0 };
    }
    return at;
}

/* Hands out what the batch brought; only bytes without a gap before them count. */
static void take_batch(const struct memory_batch *batch, struct memory_piece *pieces, struct place at)
{
    const uint8_t *bytes = batch->bytes;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct memory_piece *p = &pieces[at.piece];
        size_t size = p->size - at.offset;
        if (size > batch->pieces[i].size)
            size = batch->pieces[i].size;
        size_t got = batch->pieces[i].got < size ? batch->pieces[i].got : size;
        if (p->got == at.offset && got) {
            memcpy((uint8_t *)p->into + at.offset, bytes, got);
            p->got += got;
        }
        bytes += size;
        at.offset += size;
        if (at.offset == p->size)
            at = (struct place){ at.piece + 1, 0 };
    }
}

/* The thread by which memory was read has ended, and there is another: it is to be read again. A target whose
 * threads end as fast as we ask does not keep us: *left counts down. */
static bool change_thread(struct live_memory *live, unsigned *left)
{
    struct memory_batch *batch = live->reader.batch;
    if (batch->os_error != ESRCH || *left == 0)
        return false;
    --*left;
    pid_t old = batch->target;
    batch->target = memory_thread_of(live->pid);
    return batch->target != old;
}

static void read_live(void *user, struct memory_piece *pieces, size_t count)
{
    struct live_memory *live = user;
    unsigned changes_left = THREAD_CHANGES_MAX;
    for (size_t i = 0; i < count; i++)
        pieces[i].got = 0;
    struct place at = { 0 };
    size_t room = batch_bytes(pieces, count);
    while (at.piece < count && !live->ended) {
        if (pieces[at.piece].size == 0) {
            at.piece++;
            continue;
        }
        struct place next = fill_batch(live->reader.batch, pieces, count, at, room);
        live->ended = !run_batch(live);
        if (!live->ended && change_thread(live, &changes_left))
            continue;
        if (!live->ended)
            take_batch(live->reader.batch, pieces, at);
        at = next;
    }
}

static void follow_live(void *user, const struct memory_path *path, memory_page_fn *emit, void *to)
{
    struct live_memory *live = user;
    struct memory_batch *batch = live->reader.batch;
    if (live->ended)
        return;
    batch->path = *path;
    batch->follows = true;
    unsigned changes_left = THREAD_CHANGES_MAX;
    bool answered;
    do {
        batch->os_error = 0;
        answered = memory_reader_run(&live->reader, LIVE_MEMORY_DEADLINE_MS);
    } while (answered && change_thread(live, &changes_left));
    batch->follows = false;
    live->ended = (!answered && count_hang(live)) || !live_memory_lives(live);
    for (uint32_t i = 0; answered && !live->ended && i < batch->count && i < MEMORY_READER_PIECES; i++)
        if (batch->pieces[i].got == MEMORY_PAGE_BYTES)
            emit(to, batch->pieces[i].addr, batch->bytes + (size_t)i * MEMORY_PAGE_BYTES);
}

static void mapping_list_done(struct mapping_list *list)
{
    arena_done(&list->names);
    free(list->rows);
    *list = (struct mapping_list){ 0 };
}

/* Read while it changes: a mapping may be told twice, in pieces. */
static bool add_mapping(void *user, const struct proc_mapping *m)
{
    struct mapping_list *list = user;
    if (list->count && m->start < list->rows[list->count - 1].end)
        return true;
    const char *text = arena_string(&list->names, m->path);
    list->rows = mem_grow(list->rows, &list->capacity, list->count + 1, sizeof *list->rows);
    list->rows[list->count++] = (struct memory_mapping){
        .start = m->start,
        .end = m->end,
        .file_off = m->file_off,
        .inode = m->inode,
        .readable = m->readable,
        .writable = m->writable,
        .executable = m->executable,
        .shared = m->shared,
        .deleted = m->deleted,
        .path = text ? text : "",
    };
    return list->count < list->most;
}

static bool list_mappings(const struct live_memory *live, size_t most, struct mapping_list *out,
                          struct error *err)
{
    *out = (struct mapping_list){ .most = most };
    arena_init(&out->names, NAMES_BYTES_MAX);
    bool ok = process_mappings_each(live->pid, MAPPINGS_READABLE, add_mapping, out, err);
    if (ok && !live_memory_lives(live))
        ok = error_set(err, ERROR_TARGET, "process %d is gone", (int)live->pid);
    if (ok && out->count == 0)
        ok = error_set(err, ERROR_TARGET, "process %d has no memory: it is ending, or a thread of the kernel",
                       (int)live->pid);
    if (!ok)
        mapping_list_done(out);
    return ok;
}

static bool refresh(struct live_memory *live, size_t most, struct error *err)
{
    struct mapping_list mappings;
    if (!list_mappings(live, most, &mappings, err))
        return false;
    mapping_list_done(&live->mappings);
    live->mappings = mappings;
    live->view.mappings = mappings.rows;
    live->view.mapping_count = mappings.count;
    return true;
}

bool live_memory_refresh(struct live_memory *live, struct error *err)
{
    return refresh(live, MAPPINGS_MAX, err);
}

static bool try_reading(struct live_memory *live, struct error *err)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < live->view.mapping_count; i++) {
        const struct memory_mapping *m = &live->view.mappings[i];
        if (!m->readable || m->path[0] == '[')
            continue;
        if (memory_read(&live->view, m->start, bytes, sizeof bytes))
            return true;
        if (live->reader.batch->os_error == EPERM)
            break;
    }
    if (!live_memory_lives(live))
        return error_set(err, ERROR_TARGET, "process %d is gone", (int)live->pid);
    int e = live->reader.batch->os_error;
    if (e == ESRCH)
        return error_set(err, ERROR_TARGET, "process %d is ending", (int)live->pid);
    return error_system(err, e ? e : EIO, "cannot read the memory of process %d", (int)live->pid);
}

/* Of no process yet, and without a child. */
static struct live_memory *make(void)
{
    struct live_memory *live = mem_alloc(1, sizeof *live);
    *live = (struct live_memory){ .pidfd = -1,
                                  .view = { .read = read_live, .follow = follow_live, .user = live } };
    if (memory_reader_init(&live->reader))
        return live;
    free(live);
    return NULL;
}

struct live_memory *live_memory_new(void)
{
    struct live_memory *live = make();
    if (live)
        memory_reader_start(&live->reader);
    return live;
}

static bool choose(struct live_memory *live, pid_t pid, uint64_t start_ticks, struct error *err)
{
    live->pid = pid;
    live->reader.batch->target = memory_thread_of(pid);
    live->pidfd = pidfd_of(pid);
    if (live->pidfd < 0 && errno != ESRCH)
        return error_system(err, errno, "cannot take a handle of process %d", (int)pid);
    if (live->pidfd < 0 || (start_ticks && !proc_file_is_process(pid, start_ticks)))
        return error_set(err, ERROR_TARGET, "process %d is gone", (int)pid);
    return true;
}

static bool attach(struct live_memory *live, size_t most, struct error *err)
{
    return refresh(live, most, err) &&
           (try_reading(live, err) || (live_memory_refresh(live, err) && try_reading(live, err)));
}

bool live_memory_attach(struct live_memory *live, pid_t pid, uint64_t start_ticks, struct error *err)
{
    return choose(live, pid, start_ticks, err) && attach(live, FIRST_MAPPINGS, err);
}

bool live_memory_open(pid_t pid, uint64_t start_ticks, struct live_memory **out, struct error *err)
{
    struct live_memory *live = make();
    if (!live)
        return error_system(err, errno, "cannot share memory with a child process");
    if (!choose(live, pid, start_ticks, err) || !attach(live, MAPPINGS_MAX, err)) {
        live_memory_close(live);
        return false;
    }
    *out = live;
    return true;
}

void live_memory_keep_near(struct live_memory *live)
{
    if (live->reader.child > 0)
        thread_keep_cpu(live->reader.child);
}

void live_memory_finish(struct live_memory *live)
{
    live->ended = true;
    memory_reader_finish(&live->reader);
}

void live_memory_close(struct live_memory *live)
{
    if (!live)
        return;
    memory_reader_done(&live->reader);
    mapping_list_done(&live->mappings);
    if (live->pidfd >= 0)
        close(live->pidfd);
    free(live);
}

const struct memory *live_memory_view(const struct live_memory *live)
{
    return &live->view;
}

void live_memory_try_again(struct live_memory *live)
{
    if (live->hangs < LIVE_MEMORY_HANGS_MAX)
        return;
    live->hangs = LIVE_MEMORY_HANGS_MAX - 1;
    live->hung_ns = clock_monotonic_ns(); /* it is not forgotten */
    live->ended = !live_memory_lives(live);
}

unsigned live_memory_hangs(const struct live_memory *live)
{
    return live->hangs;
}
