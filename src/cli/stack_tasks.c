#include "cli/stack_tasks.h"

#include <string.h>

#include "base/own.h"
#include "clr/task_run.h"

struct reading {
    const struct stack_view *view;
    struct task_reader reader;
    const size_t *waits_for;
    struct stack_task *out;
    uint64_t task; /* that runs */
    size_t runner; /* the thread that says so */
};

static struct span stack_of(const struct stack_view *view, size_t row)
{
    const struct taken_thread *thread = view->rows[row].thread;
    return span_of(thread->stack, thread->stack_bytes);
}

static bool waits_for_task(const struct stack_row *row)
{
    static const char beginning[] = "Task.";
    return row->waits_at && row->waits && strncmp(row->waits, beginning, strlen(beginning)) == 0;
}

/* Who runs a task is not known while there are threads that were not looked at. */
static bool is_worth_it(const struct stack_view *view)
{
    bool waits = false;
    for (size_t i = 0; i < view->row_count; i++) {
        if (view->rows[i].thread->problem)
            return false;
        waits |= waits_for_task(&view->rows[i]);
    }
    return waits;
}

static bool runs_on(struct reading *r, uint64_t task, size_t row)
{
    return task_runs_on(&r->reader, task, stack_of(r->view, row), r->view->rows[row].executes);
}

static bool runs_elsewhere(struct reading *r)
{
    for (size_t i = 0; i < r->view->row_count; i++)
        if (i != r->runner && runs_on(r, r->task, i))
            return true;
    return false;
}

static size_t next_of(const struct reading *r, size_t row)
{
    return r->out[row].task ? r->out[row].runner : r->waits_for[row];
}

static bool leads_to(const struct reading *r, size_t from, size_t row)
{
    for (size_t steps = 0; from < r->view->row_count && steps < r->view->row_count; steps++) {
        if (from == row)
            return true;
        from = next_of(r, from);
    }
    return false;
}

/* Of several tasks that a thread waits for, the one that makes a circle counts. */
static void take_wait(void *user, const struct task_wait *wait)
{
    struct reading *r = user;
    for (size_t i = 0; i < r->view->row_count; i++) {
        const struct stack_row *row = &r->view->rows[i];
        if (i == r->runner || !wait->lock || row->waits_at != wait->lock ||
            (r->out[i].task && !leads_to(r, r->runner, i)) ||
            task_wait_is_cancellable(&r->reader, wait, stack_of(r->view, i)) || runs_elsewhere(r))
            continue;
        r->out[i] = (struct stack_task){ wait->task, r->runner };
    }
}

static void read_row(struct reading *r, size_t row)
{
    struct span stack = stack_of(r->view, row);
    r->runner = row;
    r->task = 0;
    for (size_t i = 0; i < stack.size / 8; i++) {
        uint64_t word = load_u64le(stack.data + 8 * i);
        if (word == r->task || !task_is_running(&r->reader, word) || !runs_on(r, word, row))
            continue;
        r->task = word;
        task_waits_find(&r->reader, word, take_wait, r);
    }
}

static bool may_run_task(const struct reading *r, size_t row)
{
    return r->waits_for[row] != WAIT_NOBODY || waits_for_task(&r->view->rows[row]);
}

/* What stacks refer to is read together. */
static void fetch(struct reading *r)
{
    for (size_t row = 0; row < r->view->row_count; row++) {
        struct span stack = may_run_task(r, row) ? stack_of(r->view, row) : (struct span){ 0 };
        for (size_t i = 0; i < stack.size / 8; i++)
            task_want(&r->reader, load_u64le(stack.data + 8 * i));
    }
    memory_pages_fetch(r->reader.pages);
}

void stack_tasks_read(const struct stack_view *view, struct memory_pages *pages, const size_t *waits_for,
                      struct stack_task *out)
{
    struct reading r = { .view = view, .waits_for = waits_for, .out = out };
    memset(out, 0, view->row_count * sizeof *out);
    if (!is_worth_it(view))
        return;
    task_reader_init(&r.reader, code_walk_types(view->stacks->walk), pages);
    fetch(&r);
    for (size_t i = 0; i < view->row_count; i++)
        if (may_run_task(&r, i))
            read_row(&r, i);
    task_reader_done(&r.reader);
}
