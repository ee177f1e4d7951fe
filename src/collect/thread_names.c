#include "collect/thread_names.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/managed_thread_name.h"
#include "collect/proc_file.h"
#include "read/procfs.h"

enum {
    KERNEL_NAME_BYTES = 15, /* TASK_COMM_LEN without its end */
    CUT_LETTER_BYTES = 3,   /* at most, of a letter that the kernel cut: they are left out */
    NAME_BYTES_MAX = 4 * MANAGED_THREAD_NAME_MAX,
    STATUS_BYTES_MAX = 1 << 13,
};

#define RUNTIME_NAMES ".NET "

bool thread_name_is_cut(const char *name)
{
    return strlen(name) >= KERNEL_NAME_BYTES - CUT_LETTER_BYTES &&
           strncmp(name, RUNTIME_NAMES, strlen(RUNTIME_NAMES)) != 0;
}

bool thread_name_extends(const char *cut, struct span name)
{
    size_t known = strlen(cut);
    return name.size >= known && memcmp(name.data, cut, known) == 0;
}

/* A thread, as we see it and as its process does. */
struct thread_number {
    pid_t tid, ns_tid;
};

struct thread_numbers {
    struct thread_number *items; /* ascending by ns_tid */
    size_t count, capacity;
};

static int number_compare(const void *a, const void *b)
{
    pid_t x = ((const struct thread_number *)a)->ns_tid, y = ((const struct thread_number *)b)->ns_tid;
    return (x > y) - (x < y);
}

static void list_threads(pid_t pid, struct thread_numbers *out)
{
    char path[64];
    struct buffer text;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    buffer_init(&text, STATUS_BYTES_MAX);
    for (struct dirent *entry; folder && out->count < MANAGED_THREADS_MAX && (entry = readdir(folder));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct proc_status status;
        if (tid <= 0 || !proc_file_read_task(pid, tid, "status", &text, NULL) ||
            !procfs_read_status(buffer_span(&text), &status, NULL))
            continue;
        out->items = mem_grow(out->items, &out->capacity, out->count + 1, sizeof *out->items);
        out->items[out->count++] = (struct thread_number){ tid, status.ns_pid };
    }
    if (folder)
        closedir(folder);
    buffer_done(&text);
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, number_compare);
}

static bool open_list(const struct thread_numbers *numbers, struct code_walk *walk,
                      struct managed_threads *out)
{
    AUTO_FREE pid_t *tids = mem_alloc(numbers->count + 1, sizeof *tids);
    for (size_t i = 0; i < numbers->count; i++)
        tids[i] = numbers->items[i].ns_tid;
    return managed_threads_open(code_walk_types(walk)->pages, code_walk_root(walk),
                                code_walk_report(walk)->layout, tids, numbers->count, out, NULL);
}

static bool is_cut(const struct trace *t, uint32_t thread)
{
    const struct trace_thread *row = &t->threads.rows[thread];
    return thread && !row->to_ns && thread_name_is_cut(trace_string(t, row->name));
}

static bool has_cut_names(const struct trace *t, uint32_t process)
{
    for (uint32_t i = 1; i < t->threads.count; i++)
        if (t->threads.rows[i].process == process && is_cut(t, i))
            return true;
    return false;
}

static void extend(struct trace_builder *b, uint32_t thread, struct span name)
{
    struct trace_thread *row = &b->trace.threads.rows[thread];
    if (!thread_name_extends(trace_string(&b->trace, row->name), name))
        return;
    row->name = intern_add(&b->trace.strings, name);
    trace_builder_changed(b, CHANGED_THREAD, thread);
}

static void extend_all(struct trace_builder *b, uint32_t process, const struct thread_numbers *numbers,
                       struct memory_pages *pages, const struct managed_threads *threads,
                       const struct managed_thread_name_place *place)
{
    struct buffer name;
    buffer_init(&name, NAME_BYTES_MAX);
    for (size_t i = 0; i < numbers->count; i++) {
        const struct thread_number *number = &numbers->items[i];
        uint32_t row = trace_builder_find_thread(b, process, (uint32_t)number->tid);
        const struct managed_thread *thread =
            is_cut(&b->trace, row) ? managed_threads_by_tid(threads, number->ns_tid) : NULL;
        buffer_clear(&name);
        if (thread && managed_thread_name_read(pages, place, thread, &name))
            extend(b, row, buffer_span(&name));
    }
    buffer_done(&name);
}

void thread_names_extend(struct trace_builder *b, uint32_t process, struct code_walk *walk)
{
    struct thread_numbers numbers = { 0 };
    struct managed_threads threads;
    struct managed_thread_name_place place;
    if (!has_cut_names(&b->trace, process))
        return;
    list_threads((pid_t)b->trace.processes.rows[process].pid, &numbers);
    if (open_list(&numbers, walk, &threads)) {
        struct loaded_types *types = code_walk_types(walk);
        if (managed_thread_name_place_find(types, &threads, &place))
            extend_all(b, process, &numbers, types->pages, &threads, &place);
        managed_threads_done(&threads);
    }
    free(numbers.items);
}
