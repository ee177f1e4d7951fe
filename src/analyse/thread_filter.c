#include "analyse/thread_filter.h"

#include "base/glob_text.h"
#include "base/mem.h"

bool thread_filter_wants_process(const struct thread_filter *filter, const struct trace *t, uint32_t process)
{
    const struct trace_process *row = &t->processes.rows[process];
    return !filter->process ||
           (process && glob_matches_number(filter->process, row->pid, trace_string(t, row->name)));
}

bool thread_filter_wants_thread(const struct thread_filter *filter, const struct trace *t, uint32_t thread)
{
    const struct trace_thread *row = &t->threads.rows[thread];
    return !filter->thread ||
           (thread && glob_matches_number(filter->thread, row->tid, trace_string(t, row->name)));
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
