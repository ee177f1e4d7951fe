#include "collect/newcomers.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "collect/target_access.h"
#include "collect/target_signs.h"

enum {
    NEWCOMERS_MAX = 1024,
    LOOKS_MAX = 8,      /* with the waits between them: over 12 seconds */
    FIRST_WAIT_MS = 50, /* then twice as long each time */
    PATIENCE_MS = 500,  /* with a runtime that has just started; nobody waits but other newcomers */
    LATE_PATIENCE_MS = 1500,
    DEAF_PATIENCE_MS = 60000, /* with one that says who it is, and is slow to send what it was asked for */
    LATE_LOOK = 3,
    CALL_LOOKS = 4, /* with the waits between them a runtime has called long since that was to */
    JOIN_S = 6,     /* longer than any look takes that ends at all */
};

#define MS_NS  1000000ull
#define OLD_NS (13000 * MS_NS) /* no runtime starts after so long, but for an exec */

struct newcomer {
    uint32_t process, pid;
    enum newcomer_kind kind;
    unsigned looks;
    bool has_runtime;
    uint64_t added_ns, next_ns;
    uint64_t start_ticks; /* from the first look on: the number may be given to another process */
};

struct newcomers {
    const struct runtime_session_options *ask; /* or NULL */
    pthread_t thread;
    bool running;         /* of the thread; belongs to the caller */
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t changed;
    struct newcomer waiting[NEWCOMERS_MAX];
    size_t count;
    struct newcomer_found *found;
    size_t found_first, found_count, found_capacity;
    bool looking;        /* at one that is waited for */
    uint32_t asking_pid; /* whose runtime may be asked for a session now, or 0 */
    bool finishing, stopped;
    atomic_bool given_up; /* a look at one that nobody waits for; read without the lock */
};

struct newcomers *newcomers_new(const struct runtime_session_options *ask)
{
    struct newcomers *n = mem_alloc(1, sizeof *n);
    pthread_condattr_t monotonic;
    n->ask = ask;
    pthread_mutex_init(&n->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&n->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return n;
}

void newcomer_found_done(struct newcomer_found *found)
{
    target_done(&found->target);
    runtime_session_close(found->session);
    found->session = NULL;
}

/* Its runtime is asked all the while, but nobody waits for it at the end. */
static bool newcomer_is_optional(const struct newcomer *one)
{
    return one->kind == NEWCOMER_KNOWN || one->kind == NEWCOMER_DEAF;
}

/* Whether a look at it asks its runtime, if it has one. */
static bool newcomer_asks(const struct newcomer *one)
{
    return one->kind != NEWCOMER_CALLS || one->looks >= CALL_LOOKS;
}

/* Asks its runtime for a session, when it has one. True when no other look would do better. */
static bool newcomer_ask(const struct newcomers *n, const struct newcomer *one, struct newcomer_found *found)
{
    const struct target *t = &found->target;
    bool last = one->looks + 1 >= LOOKS_MAX;
    bool is_old = one->kind <= NEWCOMER_DEAF && clock_realtime_ns() - t->started_ns > OLD_NS;
    if (!target_runtime_text(t)[0]) /* nothing is known of a silent one */
        return last || (is_old && !t->silent);
    if (is_old && !t->socket && !target_require(t, TARGET_EVENTS, &found->err)) {
        found->refused = true; /* it would have its socket by now */
        return true;
    }
    if (!newcomer_asks(one))
        return false;
    bool hasty = one->looks + 1 < LATE_LOOK || newcomer_is_optional(one);
    unsigned patience_ms = hasty ? PATIENCE_MS : LATE_PATIENCE_MS;
    struct runtime_session_options options = *n->ask;
    options.connect_timeout_ms = options.first_timeout_ms = options.reply_timeout_ms = patience_ms;
    if (one->kind == NEWCOMER_DEAF)
        options.reply_timeout_ms = DEAF_PATIENCE_MS;
    if (newcomer_is_optional(one))
        options.given_up = &n->given_up;
    options.no_list = one->kind == NEWCOMER_KNOWN || one->kind == NEWCOMER_CALLED ||
                      (one->kind != NEWCOMER_SEEN && target_require(t, TARGET_MEMORY, NULL));
    if (runtime_session_start(t->pid, t->start_ticks, &options, &found->session, &found->err)) {
        found->deaf_ns = one->kind == NEWCOMER_CALLED ? clock_monotonic_ns() - one->added_ns : 0;
        return true;
    }
    found->refused = last || found->err.kind == ERROR_PERMISSION;
    return found->refused;
}

/* Takes time. False when there is no such process any more. */
static bool newcomer_look(const struct newcomers *n, const struct newcomer *one, struct newcomer_found *found,
                          bool *over)
{
    *found = (struct newcomer_found){ .process = one->process, .target = { .pidfd = -1 } };
    if (!target_open((pid_t)one->pid, &found->target, NULL))
        return false;
    if (one->start_ticks && found->target.start_ticks != one->start_ticks)
        return false;
    *over = !n->ask || newcomer_ask(n, one, found);
    return true;
}

/*
 * Most programs are gone before a look at them would have been worth a helper process: while nothing speaks
 * of a runtime only one look is taken, and the last.
 */
static bool newcomer_can_wait(const struct newcomer *one)
{
    bool is_young =
        one->kind == NEWCOMER_FORKED || one->kind == NEWCOMER_EXECED || one->kind == NEWCOMER_CALLS;
    if (!is_young || one->looks == LATE_LOOK || one->looks + 1 >= LOOKS_MAX)
        return false;
    struct buffer scratch;
    buffer_init(&scratch, TARGET_SIGNS_BYTES_MAX);
    bool may_be = target_may_be_dotnet((pid_t)one->pid, &scratch);
    buffer_done(&scratch);
    return !may_be;
}

static struct newcomer *newcomers_find(struct newcomers *n, uint32_t pid)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->waiting[i].pid == pid)
            return &n->waiting[i];
    return NULL;
}

static void newcomers_drop(struct newcomers *n, struct newcomer *one)
{
    *one = n->waiting[--n->count];
}

static void newcomer_wait_longer(struct newcomer *one)
{
    one->next_ns = clock_monotonic_ns() + (FIRST_WAIT_MS * MS_NS << one->looks);
    one->looks++;
}

/* Under the lock again: things may have changed while we looked. */
static void newcomers_settle(struct newcomers *n, const struct newcomer *looked, bool there, bool over,
                             struct newcomer_found *found)
{
    struct newcomer *one = newcomers_find(n, looked->pid);
    /* it became another program, or was added anew: that look is still to come */
    bool other =
        one && (one->process != looked->process || (one->added_ns != looked->added_ns && !found->session));
    bool has_runtime = there && target_runtime_text(&found->target)[0];
    uint64_t start_ticks = found->target.start_ticks;
    if (!there || other || (!one && !found->session))
        newcomer_found_done(found);
    else {
        n->found = mem_grow(n->found, &n->found_capacity, n->found_count + 1, sizeof *n->found);
        n->found[n->found_count++] = *found;
    }
    if (!one || other)
        return;
    if (!there || over || (n->finishing && !has_runtime)) {
        newcomers_drop(n, one);
        return;
    }
    one->has_runtime = has_runtime;
    one->start_ticks = start_ticks;
    newcomer_wait_longer(one);
    if (n->finishing) {
        one->next_ns = 0;
        one->looks = LOOKS_MAX - 1;
    }
}

/* Unless things have changed while its signs were looked for. */
static void newcomers_postpone(struct newcomers *n, const struct newcomer *looked)
{
    struct newcomer *one = newcomers_find(n, looked->pid);
    if (one && one->process == looked->process && one->added_ns == looked->added_ns && !n->finishing)
        newcomer_wait_longer(one);
}

static struct newcomer *newcomers_next(struct newcomers *n)
{
    struct newcomer *next = NULL;
    for (size_t i = 0; i < n->count; i++)
        if (!next || n->waiting[i].next_ns < next->next_ns)
            next = &n->waiting[i];
    return next;
}

static void newcomers_wait(struct newcomers *n, uint64_t until_ns)
{
    struct timespec until = { (time_t)(until_ns / (1000 * MS_NS)), (long)(until_ns % (1000 * MS_NS)) };
    pthread_cond_timedwait(&n->changed, &n->lock, &until);
}

static void *newcomers_run(void *user)
{
    struct newcomers *n = user;
    pthread_mutex_lock(&n->lock);
    while (!n->stopped) {
        const struct newcomer *next = newcomers_next(n);
        if (!next) {
            pthread_cond_wait(&n->changed, &n->lock);
            continue;
        }
        if (next->next_ns > clock_monotonic_ns()) {
            newcomers_wait(n, next->next_ns);
            continue;
        }
        struct newcomer looked = *next;
        struct newcomer_found found;
        bool over = false;
        n->looking = !newcomer_is_optional(&looked);
        n->asking_pid = newcomer_asks(&looked) ? looked.pid : 0;
        pthread_mutex_unlock(&n->lock);
        bool waits = newcomer_can_wait(&looked);
        bool there = !waits && newcomer_look(n, &looked, &found, &over);
        pthread_mutex_lock(&n->lock);
        n->looking = false;
        n->asking_pid = 0;
        if (waits)
            newcomers_postpone(n, &looked);
        else
            newcomers_settle(n, &looked, there, over, &found);
        pthread_cond_broadcast(&n->changed);
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

static bool newcomers_start(struct newcomers *n)
{
    n->running = n->running || thread_start(&n->thread, newcomers_run, n);
    return n->running;
}

void newcomers_free(struct newcomers *n)
{
    if (!n)
        return;
    pthread_mutex_lock(&n->lock);
    n->stopped = true;
    atomic_store(&n->given_up, true);
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOIN_S;
    if (n->running && pthread_timedjoin_np(n->thread, NULL, &until) != 0)
        return; /* it hangs in a file system of a target's, and keeps what it looks at */
    for (size_t i = n->found_first; i < n->found_count; i++)
        newcomer_found_done(&n->found[i]);
    free(n->found);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

bool newcomers_add(struct newcomers *n, uint32_t process, uint32_t pid, enum newcomer_kind kind)
{
    bool ok = newcomers_start(n);
    pthread_mutex_lock(&n->lock);
    struct newcomer *one = newcomers_find(n, pid);
    ok = ok && (one || n->count < NEWCOMERS_MAX);
    if (ok && !one)
        one = &n->waiting[n->count++];
    if (ok)
        *one = (struct newcomer){
            .process = process, .pid = pid, .kind = kind, .added_ns = clock_monotonic_ns()
        };
    if (ok && kind == NEWCOMER_FORKED)
        one->next_ns = clock_monotonic_ns() + FIRST_WAIT_MS * MS_NS;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    return ok;
}

void newcomers_remove(struct newcomers *n, uint32_t pid)
{
    pthread_mutex_lock(&n->lock);
    struct newcomer *one = newcomers_find(n, pid);
    if (one)
        newcomers_drop(n, one);
    pthread_mutex_unlock(&n->lock);
}

void newcomers_hand_over(struct newcomers *n, uint32_t pid)
{
    uint64_t until_ns = clock_monotonic_ns() + PATIENCE_MS * MS_NS; /* meanwhile no ring is read */
    newcomers_remove(n, pid);
    pthread_mutex_lock(&n->lock);
    while (n->asking_pid == pid && clock_monotonic_ns() < until_ns)
        newcomers_wait(n, until_ns);
    pthread_mutex_unlock(&n->lock);
}

bool newcomers_take(struct newcomers *n, struct newcomer_found *out)
{
    pthread_mutex_lock(&n->lock);
    bool any = n->found_first < n->found_count;
    if (any)
        *out = n->found[n->found_first++];
    else
        n->found_first = n->found_count = 0;
    pthread_mutex_unlock(&n->lock);
    return any;
}

size_t newcomers_finish(struct newcomers *n, unsigned patience_ms)
{
    uint64_t until_ns = clock_monotonic_ns() + patience_ms * MS_NS;
    pthread_mutex_lock(&n->lock);
    n->finishing = true;
    atomic_store(&n->given_up, true);
    for (size_t i = n->count; i-- > 0;) {
        struct newcomer *one = &n->waiting[i];
        one->next_ns = 0;
        if ((one->looks && !one->has_runtime) || newcomer_is_optional(one))
            newcomers_drop(n, one);
        else
            one->looks = LOOKS_MAX - 1;
    }
    pthread_cond_broadcast(&n->changed);
    while ((n->count || n->looking) && clock_monotonic_ns() < until_ns)
        newcomers_wait(n, until_ns);
    size_t left = n->count;
    n->count = 0;
    pthread_mutex_unlock(&n->lock);
    return left;
}
