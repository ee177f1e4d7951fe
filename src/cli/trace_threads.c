#include "cli/trace_threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/proc_file.h"
#include "collect/thread_ids.h"

enum { SLOTS = 256, NAME_BYTES = 32 };

struct trace_threads {
    pid_t pid;
    struct thread_ids *ids;
    /* names that were asked for; threads that share a slot ask again */
    struct {
        uint32_t tid;
        char name[NAME_BYTES];
    } names[SLOTS];
};

struct trace_threads *trace_threads_new(pid_t pid, uint32_t ns_pid)
{
    struct trace_threads *threads = mem_alloc(1, sizeof *threads);
    threads->pid = pid;
    threads->ids = thread_ids_new(pid, ns_pid);
    return threads;
}

void trace_threads_free(struct trace_threads *threads)
{
    if (!threads)
        return;
    thread_ids_free(threads->ids);
    free(threads);
}

uint32_t trace_threads_tid(struct trace_threads *threads, uint64_t ns_tid)
{
    return thread_ids_find(threads->ids, ns_tid, clock_monotonic_ns());
}

const char *trace_threads_name(struct trace_threads *threads, uint32_t tid)
{
    size_t slot = tid % SLOTS;
    if (threads->names[slot].tid != tid) {
        struct buffer text;
        buffer_init(&text, NAME_BYTES);
        threads->names[slot].tid = tid;
        threads->names[slot].name[0] = 0;
        if (tid && proc_file_read_task(threads->pid, (pid_t)tid, "comm", &text, NULL) && text.size > 1)
            snprintf(threads->names[slot].name, NAME_BYTES, "%.*s", (int)text.size - 1,
                     (const char *)text.data);
        buffer_done(&text);
    }
    return threads->names[slot].name[0] ? threads->names[slot].name : NULL;
}
