#include "collect/thread_ids.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "collect/proc_file.h"
#include "read/procfs.h"

enum { STATUS_BYTES_MAX = 16384, THREADS_MAX = 1 << 16 };

/* A list takes a while in a process of thousands of threads. */
#define LIST_AGAIN_NS UINT64_C(250000000)
#define MISS_AGAIN_NS UINT64_C(5000000000)

struct thread_number {
    uint32_t ns_tid, tid;
    uint64_t missed_ns; /* tid 0: it was not there then */
};

struct thread_ids {
    pid_t pid;
    bool same;                   /* as ours */
    struct thread_number *items; /* by ns_tid */
    size_t count, capacity;
    uint64_t listed_ns;        /* 0: never */
    struct thread_number last; /* that was found */
};

struct thread_ids *thread_ids_new(pid_t pid, uint32_t ns_pid)
{
    struct thread_ids *ids = mem_alloc(1, sizeof *ids);
    ids->pid = pid;
    ids->same = ns_pid == 0 || ns_pid == (uint32_t)pid;
    return ids;
}

void thread_ids_free(struct thread_ids *ids)
{
    if (!ids)
        return;
    free(ids->items);
    free(ids);
}

static int number_compare(const void *a, const void *b)
{
    const struct thread_number *x = a, *y = b;
    return (x->ns_tid > y->ns_tid) - (x->ns_tid < y->ns_tid);
}

static const struct thread_number *find(const struct thread_ids *ids, uint32_t ns_tid)
{
    struct thread_number wanted = { .ns_tid = ns_tid };
    return ids->count ? bsearch(&wanted, ids->items, ids->count, sizeof wanted, number_compare) : NULL;
}

static void put(struct thread_ids *ids, uint32_t ns_tid, uint32_t tid, uint64_t missed_ns)
{
    struct thread_number *there = (struct thread_number *)find(ids, ns_tid);
    if (there) { /* its number may have been given away again */
        there->tid = tid;
        there->missed_ns = missed_ns;
        return;
    }
    if (ids->count == THREADS_MAX)
        return;
    ids->items = mem_grow(ids->items, &ids->capacity, ids->count + 1, sizeof *ids->items);
    size_t at = ids->count++;
    for (; at > 0 && ids->items[at - 1].ns_tid > ns_tid; at--)
        ids->items[at] = ids->items[at - 1];
    ids->items[at] = (struct thread_number){ ns_tid, tid, missed_ns };
}

/* Those that ended stay: their events may still come. */
static void list(struct thread_ids *ids)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)ids->pid);
    DIR *folder = opendir(path);
    if (!folder)
        return;
    struct buffer text;
    buffer_init(&text, STATUS_BYTES_MAX);
    struct dirent *entry;
    while ((entry = readdir(folder))) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        struct proc_status status;
        if (tid && proc_file_read_task(ids->pid, (pid_t)tid, "status", &text, NULL) &&
            procfs_read_status(buffer_span(&text), &status, NULL) && status.ns_pid > 0)
            put(ids, (uint32_t)status.ns_pid, tid, 0);
    }
    buffer_done(&text);
    closedir(folder);
}

static bool is_worth_a_list(const struct thread_ids *ids, const struct thread_number *missed, uint64_t now_ns)
{
    return (!ids->listed_ns || now_ns - ids->listed_ns >= LIST_AGAIN_NS) &&
           (!missed || now_ns - missed->missed_ns >= MISS_AGAIN_NS);
}

uint32_t thread_ids_find(struct thread_ids *ids, uint64_t ns_tid, uint64_t now_ns)
{
    if (ns_tid == 0 || ns_tid > INT32_MAX)
        return 0;
    if (ids->same)
        return (uint32_t)ns_tid;
    if (ids->last.ns_tid == ns_tid)
        return ids->last.tid;
    const struct thread_number *found = find(ids, (uint32_t)ns_tid);
    if ((!found || !found->tid) && is_worth_a_list(ids, found, now_ns)) {
        ids->listed_ns = now_ns;
        list(ids);
        found = find(ids, (uint32_t)ns_tid);
        if (!found || !found->tid)
            put(ids, (uint32_t)ns_tid, 0, now_ns);
    }
    if (!found || !found->tid)
        return 0;
    ids->last = *found;
    return found->tid;
}
