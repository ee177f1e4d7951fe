#include "cli/stack_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/idle_thread.h"
#include "analyse/managed_wait.h"
#include "base/glob_text.h"
#include "base/mem.h"
#include "cli/stack_joins.h"
#include "cli/stack_names.h"
#include "clr/task_run.h"

/* What a thread does, by names as people write them. */
static void look_at(struct stack_row *row)
{
    bool blocked = row->thread->waiting_on[0] != 0;
    for (size_t i = 0; i < row->stack->count; i++) {
        row->managed |= shown_frame_is_managed(&row->stack->frames[i]);
        row->executes |= shown_frame_is_called(&row->stack->frames[i], TASK_EXECUTE);
    }
    row->idle = row->thread->signal ? NULL : idle_thread_kind(row->name, row->stack, blocked);
    row->waits = blocked ? managed_wait_name(row->stack) : NULL;
    row->join_caller =
        row->waits && strcmp(row->waits, "Thread.Join") == 0 ? stack_join_caller(row->stack) : 0;
    row->waits_by_condition = managed_wait_is_by(row->stack, "Condition.Wait");
}

/* The rows' stacks, with the names as wanted. */
static bool show_stacks(struct stack_view *view, bool raw_names, struct error *err)
{
    struct profile_options options = { .kind = SAMPLE_CPU, .raw_names = raw_names };
    struct profile *p;
    if (!profile_build(&view->b.trace, &options, &p, err))
        return false;
    if (view->p)
        profile_free(view->p);
    view->p = p;
    size_t sample = 0;
    for (size_t i = 0; i < view->row_count; i++) {
        struct stack_row *row = &view->rows[i];
        if (row->thread->problem || sample == p->sample_count)
            continue;
        row->node = p->sample_node[sample++];
        if (!row->stack)
            row->stack = mem_alloc(1, sizeof *row->stack);
        shown_stack_read(&view->b.trace, row->thread->trace_stack, p, row->node, row->stack);
    }
    return true;
}

static void count_row(struct stack_view *view, const struct stack_row *row)
{
    uint64_t stopped_ns = row->thread->stopped_ns;
    view->shown_count++;
    view->whole += row->stack && row->stack->end == STACK_WHOLE;
    view->stopped_count += stopped_ns > 0;
    view->stopped_sum_ns += stopped_ns;
    if (stopped_ns > view->stopped_max_ns)
        view->stopped_max_ns = stopped_ns;
}

bool stack_view_make(struct stack_view *view, const struct process_stacks *stacks, bool raw_names,
                     struct error *err)
{
    view->stacks = stacks;
    view->row_count = stacks->threads.count;
    view->rows = mem_alloc(view->row_count + 1, sizeof *view->rows);
    for (size_t i = 0; i < view->row_count; i++)
        view->rows[i].thread = &stacks->threads.rows[i];
    if (!show_stacks(view, false, err))
        return false;
    stack_names_read(view);
    for (size_t i = 0; i < view->row_count; i++) {
        count_row(view, &view->rows[i]);
        if (view->rows[i].stack)
            look_at(&view->rows[i]);
    }
    return !raw_names || show_stacks(view, true, err);
}

bool stack_view_choose(struct stack_view *view, const char *glob)
{
    view->stopped_max_ns = view->stopped_sum_ns = 0;
    view->shown_count = view->stopped_count = view->whole = 0;
    for (size_t i = 0; i < view->row_count; i++) {
        struct stack_row *row = &view->rows[i];
        row->hidden = !glob_matches(glob, row->name);
        if (!row->hidden)
            count_row(view, row);
    }
    return view->shown_count > 0;
}

void stack_view_done(struct stack_view *view)
{
    for (size_t i = 0; i < view->row_count; i++) {
        free(view->rows[i].name);
        free(view->rows[i].stack);
        free(view->rows[i].lock.type);
    }
    free(view->rows);
    for (size_t i = 0; i < view->exception_count; i++) {
        free(view->exceptions[i].type);
        free(view->exceptions[i].message);
    }
    free(view->exceptions);
    if (view->async)
        stack_async_done(view->async);
    free(view->async);
    managed_threads_done(&view->threads);
    if (view->p)
        profile_free(view->p);
    trace_builder_done(&view->b);
}

size_t stack_view_cycle(const struct stack_view *view, uint32_t cycle)
{
    size_t i = 0;
    while (i < view->row_count && view->rows[i].cycle != cycle)
        i++;
    return i;
}

const char *stack_lock_kind_name(enum stack_lock_kind kind)
{
    static const char *const names[] = { NULL, "monitor", "signal", "lock", "task", "thread" };
    return names[kind];
}

pid_t stack_lock_owner(const struct stack_view *view, const struct stack_lock *lock)
{
    return lock->owner < view->row_count ? view->rows[lock->owner].thread->tid : lock->owner_tid;
}

void stack_row_lock(const struct stack_view *view, const struct stack_row *row, struct buffer *out)
{
    static const char *const words[] = { "", "monitor", "signal (Monitor.Wait)", "lock", "task", "end of" };
    static const char *const relations[] = { "", " held by", " held by", " held by", " that needs", "" };
    const struct stack_lock *lock = &row->lock;
    if (lock->kind == STACK_LOCK_NONE)
        return;
    buffer_string(out, words[lock->kind]);
    if (lock->type && lock->kind != STACK_LOCK_LOCK && lock->kind != STACK_LOCK_THREAD)
        buffer_format(out, "%s %s", lock->kind == STACK_LOCK_TASK ? "" : " of", lock->type);
    if (lock->object && lock->kind != STACK_LOCK_THREAD)
        buffer_format(out, " 0x%" PRIx64, lock->object);
    pid_t owner = stack_lock_owner(view, lock);
    if (owner)
        buffer_format(out, "%s thread %d", relations[lock->kind], (int)owner);
    if (lock->abandoned)
        buffer_format(out, "%s which has ended: nobody will leave it", owner ? "," : " held by a thread");
}

void stack_row_wait(const struct stack_view *view, const struct stack_row *row, struct buffer *out)
{
    const char *kernel = row->thread->waiting_on;
    /* Monitor.Wait is how others wait: their name says more */
    bool inner = row->lock.kind == STACK_LOCK_SIGNAL && row->waits && strcmp(row->waits, "Monitor.Wait") != 0;
    if (row->lock.kind == STACK_LOCK_THREAD)
        buffer_string(out, "Thread.Join until the ");
    if (kernel[0] && row->lock.kind != STACK_LOCK_NONE && !inner)
        stack_row_lock(view, row, out);
    else if (row->waits)
        buffer_string(out, row->waits);
    if (out->size && kernel[0])
        buffer_format(out, " (%s)", kernel);
    else
        buffer_string(out, kernel);
}

const char *stack_row_state(const struct stack_row *row)
{
    switch (row->thread->state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "waiting for a device";
    case 'T':
        return "stopped";
    case 't':
        return "stopped by a debugger";
    case 'Z':
    case 'X':
        return "dead";
    case 'I':
        return "idle";
    default:
        return NULL;
    }
}
