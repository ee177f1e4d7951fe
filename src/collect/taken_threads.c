#include "collect/taken_threads.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/proc_file.h"
#include "read/procfs.h"

enum {
    WAIT_TEXT_MAX = 8192,
    STAT_BYTES_MAX = 4096,
    WAIT_PAGES_BYTES_MAX = 16 << 20,
    REFUSALS_MAX = 4, /* without anybody seen who traces */
    TRACER_LOOK_MS = 2,
    TRACER_LOOK_MAX_MS = 32,
};

static void thread_done(struct taken_thread *thread)
{
    free(thread->name);
    free(thread->waiting_on);
    free(thread->problem);
    free(thread->stack);
}

void taken_threads_renew(struct taken_threads *threads)
{
    for (size_t i = 0; i < threads->count; i++)
        thread_done(&threads->rows[i]);
    threads->count = threads->other_count = 0;
}

void taken_threads_done(struct taken_threads *threads)
{
    taken_threads_renew(threads);
    free(threads->rows);
    free(threads->others);
    *threads = (struct taken_threads){ 0 };
}

struct taken_thread *taken_threads_add(struct taken_threads *threads, pid_t tid)
{
    threads->rows = mem_grow(threads->rows, &threads->capacity, threads->count + 1, sizeof *threads->rows);
    struct taken_thread *thread = &threads->rows[threads->count++];
    *thread = (struct taken_thread){ .tid = tid, .ns_tid = tid };
    return thread;
}

void taken_threads_add_other(struct taken_threads *threads, pid_t tid, pid_t ns_tid)
{
    threads->others = mem_grow(threads->others, &threads->other_capacity, threads->other_count + 1,
                               sizeof *threads->others);
    threads->others[threads->other_count++] = (struct thread_numbers){ tid, ns_tid };
}

static int compare_tids(const void *a, const void *b)
{
    pid_t x = ((const struct taken_thread *)a)->tid, y = ((const struct taken_thread *)b)->tid;
    return (x > y) - (x < y);
}

static bool list_threads(struct taken_threads *threads, pid_t pid, pid_t only_tid, struct error *err)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(folder);
    for (struct dirent *entry;
         dir && threads->count + threads->other_count < TAKEN_THREADS_MAX && (entry = readdir(dir));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && (!only_tid || tid == only_tid))
            taken_threads_add(threads, tid);
        else if (tid > 0)
            taken_threads_add_other(threads, tid, tid);
    }
    if (dir)
        closedir(dir);
    if (threads->count)
        qsort(threads->rows, threads->count, sizeof *threads->rows, compare_tids);
    else if (dir && only_tid)
        return error_set(err, ERROR_TARGET, "process %d has no thread %d", (int)pid, (int)only_tid);
    return threads->count || error_set(err, ERROR_TARGET, "process %d is gone", (int)pid);
}

static void read_state(pid_t pid, struct taken_thread *thread)
{
    struct buffer text;
    struct proc_stat stat;
    buffer_init(&text, STAT_BYTES_MAX);
    if (proc_file_read_task(pid, thread->tid, "stat", &text, NULL) &&
        procfs_read_stat(buffer_span(&text), &stat, NULL)) {
        thread->state = stat.state;
        thread->name = mem_format("%.*s", (int)stat.name.size, (const char *)stat.name.data);
    }
    buffer_done(&text);
    if (!thread->name)
        thread->name = mem_copy_string("");
}

/* Its number as the process has it itself. False when that is known to be the same, as of all threads then.
 */
static bool read_ns_tid(pid_t pid, pid_t tid, pid_t *out_ns_tid)
{
    struct proc_status status;
    struct buffer lines;
    buffer_init(&lines, STAT_BYTES_MAX);
    bool known = proc_file_read_task(pid, tid, "status", &lines, NULL) &&
                 procfs_read_status(buffer_span(&lines), &status, NULL);
    if (known)
        *out_ns_tid = status.ns_pid;
    buffer_done(&lines);
    return !known || status.ns_depth > 0;
}

/* What the kernel says of them, before they are stopped. */
static void read_states(struct taken_threads *threads, pid_t pid)
{
    bool nested = read_ns_tid(pid, threads->rows[0].tid, &threads->rows[0].ns_tid);
    for (size_t i = 0; i < threads->count; i++) {
        read_state(pid, &threads->rows[i]);
        if (nested && i > 0)
            read_ns_tid(pid, threads->rows[i].tid, &threads->rows[i].ns_tid);
    }
    for (size_t i = 0; nested && i < threads->other_count; i++)
        read_ns_tid(pid, threads->others[i].tid, &threads->others[i].ns_tid);
}

/* What lies above are the arguments. */
static uint64_t main_stack_end(pid_t pid)
{
    struct proc_stat stat;
    return proc_file_stat(pid, &stat, NULL) ? stat.stack_start : 0;
}

static void keep_stop(struct taken_thread *thread, const struct thread_stop *stop)
{
    thread->registers = stop->registers;
    thread->stopped_ns = stop->stopped_ns;
    thread->stack = mem_alloc(stop->stack.size + 1, 1);
    thread->stack_bytes = stop->stack.size;
    if (stop->stack.size)
        memcpy(thread->stack, stop->stack.data, stop->stack.size);
}

/* A look under way. */
struct look {
    struct taken_threads *threads;
    struct thread_stopper *stopper;
    uint64_t stack_end;        /* of the main thread */
    struct thread_stop *stops; /* by row: the last answer */
    size_t taken;
};

/* Somebody traced the thread at one of the last tries: so much is kept of them. */
static void keep_answer(struct look *look, size_t row, struct thread_stop *stop)
{
    if (!stop->tracer)
        stop->tracer = look->stops[row].tracer;
    look->stops[row] = *stop;
    if (stop->problem.kind != ERROR_NONE)
        return;
    keep_stop(&look->threads->rows[row], stop);
    look->taken++;
}

/* Stops threads, in parts. Where not even one of the first may be looked at the others are not asked. */
static void stop_rows(struct look *look, const size_t *rows, size_t count)
{
    AUTO_FREE struct thread_stop *stops = mem_alloc(count, sizeof *stops);
    for (size_t i = 0; i < count; i++)
        stops[i].tid = look->threads->rows[rows[i]].tid;
    for (size_t done = 0, end; done < count; done = end) {
        bool refused = look->taken == 0;
        end = done + thread_stopper_take(look->stopper, look->stack_end, stops + done, count - done);
        for (size_t i = done; i < end; i++) {
            refused = refused && stops[i].problem.kind == ERROR_PERMISSION;
            keep_answer(look, rows[i], &stops[i]);
        }
        for (size_t i = end; refused && i < count; i++) {
            stops[i].problem = stops[0].problem;
            stops[i].tracer = stops[0].tracer;
            keep_answer(look, rows[i], &stops[i]);
        }
        if (refused)
            return;
    }
}

/* Those that were refused because somebody traces them, who may let go of them soon, as one like us does. Who
 * has let go since cannot be seen any more. Returns how many there are. */
static size_t find_traced(const struct look *look, unsigned tries, size_t *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < look->threads->count; i++) {
        const struct thread_stop *stop = &look->stops[i];
        if (stop->problem.kind == ERROR_PERMISSION && (stop->tracer || tries < REFUSALS_MAX) &&
            !proc_file_has_ended(stop->tid))
            rows[count++] = i;
    }
    return count;
}

static void stop_threads(struct look *look)
{
    size_t count = look->threads->count;
    int wait_ms = TRACER_LOOK_MS;
    AUTO_FREE size_t *rows = mem_alloc(count, sizeof *rows);
    for (size_t i = 0; i < count; i++)
        rows[i] = i;
    stop_rows(look, rows, count);
    uint64_t deadline_ns = clock_monotonic_ns() + THREAD_TRACER_WAIT_MS * UINT64_C(1000000);
    for (unsigned tries = 1; (count = find_traced(look, tries, rows)) > 0; tries++) {
        if (clock_monotonic_ns() >= deadline_ns)
            return;
        poll(NULL, 0, wait_ms);
        wait_ms = wait_ms < TRACER_LOOK_MAX_MS ? 2 * wait_ms : wait_ms;
        stop_rows(look, rows, count);
    }
}

/* Why a thread has no stack. */
static void keep_problem(pid_t pid, struct taken_thread *thread, struct thread_stop *stop)
{
    if (stop->problem.kind == ERROR_NONE)
        return;
    if (proc_file_has_ended(thread->tid)) /* one that is ending is refused like one of others */
        error_set(&stop->problem, ERROR_TARGET, "process %d is gone", (int)pid);
    thread->problem = mem_copy_string(stop->problem.what);
}

static void remove_thread(struct taken_threads *threads, size_t i)
{
    struct taken_thread *thread = &threads->rows[i];
    thread_done(thread);
    memmove(thread, thread + 1, (--threads->count - i) * sizeof *thread);
}

bool taken_threads_take(struct taken_threads *threads, pid_t pid, struct thread_stopper *stopper,
                        pid_t only_tid, struct error *err)
{
    taken_threads_renew(threads);
    if (!list_threads(threads, pid, only_tid, err))
        return false;
    size_t count = threads->count, kept = 0;
    AUTO_FREE struct thread_stop *stops = mem_alloc(count, sizeof *stops);
    struct look look = { threads, stopper, main_stack_end(pid), stops, 0 };
    read_states(threads, pid);
    stop_threads(&look);
    for (size_t i = 0; i < count; i++) {
        keep_problem(pid, &threads->rows[kept], &stops[i]);
        if (stops[i].problem.kind == ERROR_TARGET) /* it ended since it was listed */
            remove_thread(threads, kept);
        else
            kept++;
    }
    if (look.taken == 0)
        *err = stops[0].problem;
    return look.taken > 0;
}

static bool name_fd(void *user, int fd, struct buffer *out)
{
    const pid_t *pid = user;
    char file[32], target[4096];
    snprintf(file, sizeof file, "fd/%d", fd);
    if (fd < 0 || !proc_file_link(*pid, file, target, sizeof target, NULL))
        return false;
    buffer_string(out, target);
    return true;
}

void taken_thread_describe_wait(struct taken_thread *thread, const struct thread_wait_sources *sources)
{
    struct buffer text;
    buffer_init(&text, WAIT_TEXT_MAX);
    thread_wait_describe(&thread->registers, sources, &text);
    thread->waiting_on = mem_format("%.*s", (int)text.size, text.data ? (const char *)text.data : "");
    buffer_done(&text);
}

void taken_threads_describe_waits(struct taken_threads *threads, pid_t pid, const struct memory *memory)
{
    struct memory_pages pages;
    struct thread_wait_sources sources = { &pages, name_fd, &pid };
    memory_pages_init(&pages, memory, WAIT_PAGES_BYTES_MAX);
    for (size_t i = 0; i < threads->count; i++)
        if (!threads->rows[i].problem)
            thread_wait_want_code(&threads->rows[i].registers, &pages);
    memory_pages_fetch(&pages);
    for (size_t i = 0; i < threads->count; i++)
        if (!threads->rows[i].problem)
            thread_wait_want_arguments(&threads->rows[i].registers, &sources);
    memory_pages_fetch(&pages);
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->rows[i].problem)
            threads->rows[i].waiting_on = mem_copy_string("");
        else
            taken_thread_describe_wait(&threads->rows[i], &sources);
    }
    memory_pages_done(&pages);
}
