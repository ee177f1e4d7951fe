#include "analyse/thread_filter.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static bool is_number_or_glob(const char *wanted, uint64_t number, const char *name)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, number);
    return strcmp(wanted, digits) == 0 || fnmatch(wanted, name, FNM_CASEFOLD) == 0;
}

bool thread_filter_wants_process(const struct thread_filter *filter, const struct trace *t, uint32_t process)
{
    const struct trace_process *row = &t->processes.rows[process];
    return !filter->process ||
           (process && is_number_or_glob(filter->process, row->pid, trace_string(t, row->name)));
}

bool thread_filter_wants_thread(const struct thread_filter *filter, const struct trace *t, uint32_t thread)
{
    const struct trace_thread *row = &t->threads.rows[thread];
    return !filter->thread ||
           (thread && is_number_or_glob(filter->thread, row->tid, trace_string(t, row->name)));
}

bool *thread_filter_threads(const struct thread_filter *filter, const struct trace *t)
{
    if (!filter->process && !filter->thread)
        return NULL;
    bool *wanted = mem_alloc(t->threads.count, sizeof *wanted);
    for (uint32_t i = 0; i < t->threads.count; i++)
        wanted[i] = thread_filter_wants_thread(filter, t, i) &&
                    thread_filter_wants_process(filter, t, t->threads.rows[i].process);
    return wanted;
}
