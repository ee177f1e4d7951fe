#include "cli/stack_locks.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/wait_cycle.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "cli/stack_joins.h"
#include "cli/stack_tasks.h"
#include "cli/stack_threads.h"
#include "cli/stack_words.h"
#include "clr/managed_lock.h"
#include "clr/type_name.h"
#include "collect/proc_file.h"
#include "collect/thread_ids.h"
#include "collect/thread_rest.h"
#include "collect/thread_wait.h"

enum {
    PAGES_BYTES_MAX = 64 << 20,
    LOCK_STACK_BYTES = 2048, /* of a stack, where a System.Threading.Lock that is waited for lies */
    CONDITION_FIELDS = 4,
    TRIES = 5,
    TRY_MS = 10,
};

#define LOCK_TYPE "System.Threading.Lock"

struct reading {
    struct stack_view *view;
    struct memory_pages pages;
    struct managed_threads *threads; /* the view's */
    bool live;                       /* of a process, not of a dump */
    size_t *waits_for;               /* by row */
    struct stack_task *tasks;
};

static size_t row_of(const struct stack_view *view, pid_t ns_tid)
{
    for (size_t i = 0; i < view->row_count; i++)
        if (view->rows[i].thread->ns_tid == ns_tid)
            return i;
    return WAIT_NOBODY;
}

/* Of one that was not asked for; 0: there is none such. */
static pid_t other_tid(const struct stack_view *view, pid_t ns_tid)
{
    const struct taken_threads *threads = &view->stacks->threads;
    for (size_t i = 0; i < threads->other_count; i++)
        if (threads->others[i].ns_tid == ns_tid)
            return threads->others[i].tid;
    return 0;
}

static void name_type(struct reading *r, uint64_t table, struct stack_lock *out)
{
    const char *name = table ? code_walk_type_name(r->view->stacks->walk, table) : NULL;
    struct buffer text;
    buffer_init(&text, 4096);
    if (name)
        type_name_show(span_of(name, strlen(name)), &text);
    free(out->type);
    out->type = text.size ? mem_format("%.*s", (int)text.size, (const char *)text.data) : NULL;
    buffer_done(&text);
}

static void set_lock(struct reading *r, struct stack_row *row, enum stack_lock_kind kind,
                     const struct managed_lock *lock)
{
    row->lock.kind = kind;
    row->lock.object = lock->object;
    bool has_owner = lock->owner && !lock->abandoned;
    row->lock.abandoned = lock->abandoned;
    row->lock.owner = has_owner ? row_of(r->view, lock->owner) : WAIT_NOBODY;
    row->lock.owner_tid = has_owner ? other_tid(r->view, lock->owner) : lock->owner;
    name_type(r, lock->table, &row->lock);
}

/* Whether a thread that was not in the list is there all the same: it began since then. */
static bool is_there(const struct reading *r, pid_t ns_tid)
{
    pid_t pid = r->view->stacks->target.pid;
    struct proc_status status;
    if (!r->live || !ns_tid || !proc_file_status(pid, &status, NULL))
        return false;
    struct thread_ids *ids = thread_ids_new(pid, (uint32_t)status.ns_pid);
    uint32_t tid = thread_ids_find(ids, (uint64_t)ns_tid, clock_monotonic_ns());
    thread_ids_free(ids);
    return tid && !proc_file_has_ended((pid_t)tid);
}

static bool read_monitor(struct reading *r, struct stack_row *row, const struct managed_thread *thread)
{
    struct managed_lock lock;
    if (thread->blocking == BLOCKING_NONE ||
        !managed_lock_read_monitor(&r->pages, r->threads, thread->sync_block, &lock) ||
        (lock.abandoned && is_there(r, lock.owner)))
        return false;
    set_lock(r, row, thread->blocking == BLOCKING_ENTER ? STACK_LOCK_MONITOR : STACK_LOCK_SIGNAL, &lock);
    row->lock.timed = thread->timeout_ms >= 0;
    row->waits_at = thread->blocking == BLOCKING_WAIT ? lock.object : 0;
    return true;
}

static bool is_object_of(struct reading *r, uint64_t object, const char *type)
{
    uint64_t table = managed_object_at(&r->pages, object);
    const char *name = table ? code_walk_type_name(r->view->stacks->walk, table) : NULL;
    return name && strcmp(name, type) == 0;
}

/* What an object on a thread's stack says of the lock that the thread waits for. False: it is not that. */
typedef bool lock_of_fn(struct reading *r, const struct taken_thread *thread, uint64_t object,
                        struct managed_lock *out);

static bool lock_itself(struct reading *r, const struct taken_thread *thread, uint64_t object,
                        struct managed_lock *out)
{
    return managed_lock_read_object(&r->pages, r->threads, object, out) && out->owner != thread->ns_tid;
}

/* One of a System.Threading.Condition's fields is the Lock; whoever holds it does not matter. */
static bool lock_of_condition(struct reading *r, const struct taken_thread *thread, uint64_t object,
                              struct managed_lock *out)
{
    (void)thread;
    for (size_t field = 1; field <= CONDITION_FIELDS; field++) {
        uint64_t lock = memory_pages_u64(&r->pages, object + 8 * field);
        if (!is_object_of(r, lock, LOCK_TYPE))
            continue;
        *out = (struct managed_lock){ .object = lock };
        managed_lock_read_object(&r->pages, r->threads, lock, out);
        return true;
    }
    return false;
}

/* No list tells who waits for a System.Threading.Lock; the stack of who does has the address of what it waits
 * at, again and again. */
static bool find_on_stack(struct reading *r, const struct taken_thread *thread, const char *type,
                          lock_of_fn *lock_of, struct managed_lock *out)
{
    size_t best_count = 0;
    size_t words = (thread->stack_bytes < LOCK_STACK_BYTES ? thread->stack_bytes : LOCK_STACK_BYTES) / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t object = stack_words_at(thread, i);
        size_t count = 0;
        struct managed_lock lock;
        for (size_t k = i; k < words; k++)
            count += stack_words_at(thread, k) == object;
        if (count > best_count && is_object_of(r, object, type) && lock_of(r, thread, object, &lock)) {
            *out = lock;
            best_count = count;
        }
    }
    return best_count > 0;
}

/* The lock is that of a monitor: it is told by its object. */
static bool as_monitor(struct reading *r, struct managed_lock *lock)
{
    uint64_t object = managed_lock_monitor_of(&r->pages, r->threads, lock->object);
    if (!object)
        return false;
    lock->object = object;
    lock->table = managed_object_table(&r->pages, object);
    return true;
}

static bool waits_in(const struct stack_row *row, const char *method)
{
    return row->waits && strcmp(row->waits, method) == 0;
}

/* Whom the stack tells to wait for a lock; the frames tell of which kind. */
static bool read_lock_object(struct reading *r, struct stack_row *row)
{
    bool monitors = managed_lock_in_monitors(r->threads), tries = waits_in(row, "Monitor.TryEnter");
    bool enters = waits_in(row, "Lock.Enter") || (monitors && (tries || waits_in(row, "Monitor.Enter")));
    struct managed_lock lock;
    if (enters && find_on_stack(r, row->thread, LOCK_TYPE, lock_itself, &lock)) {
        set_lock(r, row, monitors && as_monitor(r, &lock) ? STACK_LOCK_MONITOR : STACK_LOCK_LOCK, &lock);
        row->lock.timed = tries;
        return true;
    }
    /* others wait by Monitor.Wait, too: it need not be in the name of their waits */
    if (!monitors || !row->waits_by_condition ||
        !find_on_stack(r, row->thread, "System.Threading.Condition", lock_of_condition, &lock))
        return false;
    row->waits_at = lock.object; /* what is made of .NET's own locks is nobody's monitor */
    row->lock.timed = strstr(row->thread->waiting_on, THREAD_WAIT_LIMITED) != NULL;
    if (!as_monitor(r, &lock))
        return false;
    row->waits_at = lock.object;
    set_lock(r, row, STACK_LOCK_SIGNAL, &lock);
    return true;
}

/* The end of a thread is held up by that thread. */
static bool read_join(struct reading *r, struct stack_row *row)
{
    uint64_t object = 0;
    const struct managed_thread *thread =
        row->join_caller ? stack_join_target(r->view, row, &r->pages, &object) : NULL;
    /* one that began after the look is none of its threads */
    if (!thread || (row_of(r->view, thread->tid) == WAIT_NOBODY && !other_tid(r->view, thread->tid)))
        return false;
    const struct managed_lock as_lock = { .object = object,
                                          .table = managed_object_table(&r->pages, object),
                                          .owner = thread->tid };
    set_lock(r, row, STACK_LOCK_THREAD, &as_lock);
    row->lock.timed = strstr(row->thread->waiting_on, THREAD_WAIT_LIMITED) != NULL;
    return true;
}

/* In the place of the signal that a wait for a task is made of. */
static void add_tasks(struct reading *r)
{
    struct stack_view *view = r->view;
    stack_tasks_read(view, &r->pages, r->waits_for, r->tasks);
    for (size_t i = 0; i < view->row_count; i++) {
        const struct stack_task *task = &r->tasks[i];
        if (!task->task)
            continue;
        const struct managed_lock as_lock = { .object = task->task,
                                              .table = managed_object_table(&r->pages, task->task),
                                              .owner = view->rows[task->runner].thread->ns_tid };
        set_lock(r, &view->rows[i], STACK_LOCK_TASK, &as_lock);
        r->waits_for[i] = view->rows[i].lock.owner;
    }
}

static void read_edges(struct reading *r)
{
    struct stack_view *view = r->view;
    for (size_t i = 0; i < view->row_count; i++) {
        struct stack_row *row = &view->rows[i];
        const struct managed_thread *thread = managed_threads_by_tid(r->threads, row->thread->ns_tid);
        row->lock.kind = STACK_LOCK_NONE;
        row->lock.timed = false;
        row->waits_at = 0;
        r->waits_for[i] = WAIT_NOBODY;
        if (!thread || !row->stack)
            continue;
        row->managed = true;
        bool found = read_monitor(r, row, thread) || read_lock_object(r, row) || read_join(r, row);
        if (found && row->lock.kind != STACK_LOCK_SIGNAL && row->lock.owner != i)
            r->waits_for[i] = row->lock.owner;
    }
    add_tasks(r);
}

/* So much of the stack of who is in a circle tells of it: what runs a task can lie anywhere. */
static size_t telling_bytes(const struct stack_view *view, const struct taken_thread *thread)
{
    for (size_t i = 0; i < view->row_count; i++)
        if (view->rows[i].cycle && view->rows[i].lock.kind == STACK_LOCK_TASK)
            return thread->stack_bytes;
    return thread->stack_bytes < LOCK_STACK_BYTES ? thread->stack_bytes : LOCK_STACK_BYTES;
}

static bool is_unchanged(const struct stack_view *view, const struct taken_thread *thread)
{
    size_t size = telling_bytes(view, thread);
    for (size_t at = 0; at < size; at += LOCK_STACK_BYTES) {
        uint8_t now[LOCK_STACK_BYTES];
        size_t part = size - at < sizeof now ? size - at : sizeof now;
        if (!memory_read(view->stacks->target.memory, thread->registers.general.sp + at, now, part) ||
            memcmp(now, thread->stack + at, part) != 0)
            return false;
    }
    return true;
}

/* Whether the threads of circles rest, and what they rest at is what was unwound. */
static bool rests(const struct reading *r, struct thread_rest *out)
{
    const struct stack_view *view = r->view;
    for (size_t i = 0; i < view->row_count; i++) {
        const struct taken_thread *thread = view->rows[i].thread;
        if (!view->rows[i].cycle)
            continue;
        if (!thread_rest_read(view->stacks->target.pid, thread->tid, &out[i]) ||
            out[i].stack_pointer != thread->registers.general.sp || !is_unchanged(view, thread))
            return false;
    }
    return true;
}

static size_t find_cycles(struct reading *r)
{
    struct stack_view *view = r->view;
    AUTO_FREE uint32_t *cycle_of = mem_alloc(view->row_count + 1, sizeof *cycle_of);
    memory_pages_drop(&r->pages);
    size_t count = managed_threads_read(r->threads, &r->pages)
                       ? (read_edges(r), wait_cycles_find(r->waits_for, view->row_count, cycle_of))
                       : 0;
    for (size_t i = 0; i < view->row_count; i++)
        view->rows[i].cycle = cycle_of[i];
    return count;
}

/*
 * A process that runs changes while it is read, and what never was at one time can look like a circle. Who
 * has slept all the while has changed nothing: neither whom it waits for, nor what it holds.
 */
static size_t confirm_cycles(struct reading *r, size_t count)
{
    size_t rows = r->view->row_count;
    AUTO_FREE struct thread_rest *before = mem_alloc(rows + 1, sizeof *before);
    AUTO_FREE struct thread_rest *after = mem_alloc(rows + 1, sizeof *after);
    for (unsigned i = 0; count && i < TRIES; i++) {
        AUTO_FREE uint32_t *asked = mem_alloc(rows + 1, sizeof *asked);
        bool resting = rests(r, before);
        for (size_t k = 0; k < rows; k++)
            asked[k] = r->view->rows[k].cycle;
        count = find_cycles(r);
        bool same = true;
        for (size_t k = 0; k < rows; k++)
            same &= asked[k] == r->view->rows[k].cycle;
        if (count && same && resting && rests(r, after) && memcmp(before, after, rows * sizeof *before) == 0)
            return count;
        poll(NULL, 0, TRY_MS);
    }
    for (size_t k = 0; k < rows; k++)
        r->view->rows[k].cycle = 0;
    return 0;
}

/* It waits to enter something, and who is in there is not known. */
static bool waits_for_unknown(const struct stack_row *row)
{
    bool enters = waits_in(row, "Lock.Enter") || waits_in(row, "Monitor.Enter");
    bool locked = row->lock.kind == STACK_LOCK_MONITOR || row->lock.kind == STACK_LOCK_LOCK;
    bool unowned = row->lock.owner == WAIT_NOBODY && !row->lock.owner_tid && !row->lock.abandoned;
    return locked ? unowned : row->lock.kind == STACK_LOCK_NONE && enters;
}

/* A small dump has the threads, not who holds what they wait for: that no circle is seen means nothing then.
 */
static void note_unread(struct stack_view *view)
{
    size_t unread = 0;
    for (size_t i = 0; i < view->row_count; i++)
        unread += waits_for_unknown(&view->rows[i]);
    if (unread)
        error_set(&view->locks_problem, ERROR_INPUT,
                  "the dump does not say who holds what %zu thread%s wait%s for; one with the heap does",
                  unread, unread == 1 ? "" : "s", unread == 1 ? "s" : "");
}

void stack_locks_read(struct stack_view *view, bool live)
{
    struct reading r = { .view = view, .live = live };
    if (!view->stacks->walk)
        return;
    r.threads = stack_threads_of(view, &view->locks_problem);
    memory_pages_init(&r.pages, view->stacks->target.memory, PAGES_BYTES_MAX);
    if (r.threads) {
        r.waits_for = mem_alloc(view->row_count + 1, sizeof *r.waits_for);
        r.tasks = mem_alloc(view->row_count + 1, sizeof *r.tasks);
        view->deadlocks = find_cycles(&r);
        if (live)
            view->deadlocks = confirm_cycles(&r, view->deadlocks);
        else if (!view->deadlocks)
            note_unread(view);
        free(r.waits_for);
        free(r.tasks);
    }
    memory_pages_done(&r.pages);
}
