#include "cli/stack_view.h"

static void write_place(const struct stack_view *view, uint32_t file, uint32_t line, const char *line_is,
                        struct json_writer *w)
{
    json_key(w, "file");
    json_quoted(w, line ? trace_string(&view->b.trace, file) : NULL);
    json_key(w, "line");
    if (line)
        json_u64(w, line);
    else
        json_absent(w);
    json_key(w, "line_is");
    json_quoted(w, line ? line_is : NULL);
}

/* What the compiler inlined at a frame: frames of their own, at the same address. */
static void write_inlined(const struct stack_view *view, const struct shown_frame *frame, unsigned i,
                          struct json_writer *w)
{
    const struct trace *t = &view->b.trace;
    const struct trace_inlined *inlined = &t->inlined.rows[frame->location->inlined + i];
    const struct trace_function *function = &t->functions.rows[inlined->function];
    const char *module = trace_string(t, function->module);
    json_begin_object(w);
    json_key(w, "function");
    json_quoted(w, trace_string(t, function->name));
    json_key(w, "module");
    json_quoted(w, module[0] ? module : NULL);
    json_key(w, "kind");
    json_quoted(w, code_kind_name((enum code_kind)function->kind));
    json_key(w, "tier");
    json_absent(w);
    write_place(view, inlined->file, inlined->line, "statement", w);
    json_key(w, "inlined");
    json_bool(w, true);
    json_key(w, "address");
    json_hex(w, frame->location->addr);
    json_end_object(w);
}

static void write_frame(const struct stack_view *view, const struct shown_frame *frame, struct json_writer *w)
{
    const struct trace_location *location = frame->location;
    const struct trace_function *function = &view->b.trace.functions.rows[location->function];
    const char *module = frame->frame->module;
    json_begin_object(w);
    json_key(w, "function");
    json_quoted(w, frame->frame->unnamed ? NULL : frame->frame->name);
    json_key(w, "module");
    json_quoted(w, module[0] ? module : NULL);
    json_key(w, "kind");
    /* a function that runs in two forms is one frame: this is the one at hand */
    json_quoted(w,
                code_kind_name((enum code_kind)(location->function ? function->kind : frame->frame->kind)));
    json_key(w, "tier");
    json_quoted(w, code_tier_name((enum code_tier)location->tier));
    write_place(view, location->file, location->line, location->line_of_method ? "method" : "statement", w);
    json_key(w, "inlined");
    json_bool(w, false);
    json_key(w, "address");
    json_hex(w, location->addr);
    json_end_object(w);
}

static void write_frames(const struct stack_view *view, const struct stack_row *row, bool managed_only,
                         struct json_writer *w)
{
    static const char *const ends[] = {
        [STACK_WHOLE] = "whole", [STACK_TRUNCATED] = "truncated", [STACK_BROKEN] = "broken"
    };
    json_key(w, "frames");
    json_begin_array(w);
    for (size_t i = 0; row->stack && i < row->stack->count; i++) {
        const struct shown_frame *frame = &row->stack->frames[i];
        if (managed_only && !shown_frame_is_managed(frame))
            continue;
        for (unsigned k = 0; k < frame->location->inlined_count; k++)
            write_inlined(view, frame, k, w);
        write_frame(view, frame, w);
    }
    json_end_array(w);
    json_key(w, "end");
    json_quoted(w, row->stack ? ends[row->stack->end] : "broken");
}

static void write_lock(const struct stack_view *view, const struct stack_row *row, struct json_writer *w)
{
    const struct stack_lock *lock = &row->lock;
    if (lock->kind == STACK_LOCK_NONE) {
        json_absent(w);
        return;
    }
    json_begin_object(w);
    json_key(w, "kind");
    json_quoted(w, stack_lock_kind_name(lock->kind));
    json_key(w, "object");
    if (lock->object)
        json_hex(w, lock->object);
    else
        json_absent(w);
    json_key(w, "type");
    json_quoted(w, lock->type);
    json_key(w, "owner");
    pid_t owner = stack_lock_owner(view, lock);
    if (owner)
        json_i64(w, owner);
    else
        json_absent(w);
    json_key(w, "abandoned");
    json_bool(w, lock->abandoned);
    json_end_object(w);
}

/* The threads of each circle, each before the one it waits for. */
static void write_deadlocks(const struct stack_view *view, struct json_writer *w)
{
    json_begin_array(w);
    for (uint32_t cycle = 1; cycle <= view->deadlocks; cycle++) {
        size_t first = stack_view_cycle(view, cycle), at = first;
        json_begin_array(w);
        for (; at < view->row_count; at = view->rows[at].lock.owner) {
            json_i64(w, view->rows[at].thread->tid);
            if (view->rows[at].lock.owner == first)
                break;
        }
        json_end_array(w);
    }
    json_end_array(w);
}

/* Of the thread that died, else null. */
static void write_exceptions(const struct stack_view *view, const struct taken_thread *thread,
                             struct json_writer *w)
{
    json_key(w, "exceptions");
    if (!thread->signal) {
        json_absent(w);
        return;
    }
    json_begin_array(w);
    for (size_t i = 0; i < view->exception_count; i++) {
        const struct stack_exception *e = &view->exceptions[i];
        json_begin_object(w);
        json_key(w, "type");
        json_quoted(w, e->type);
        json_key(w, "message");
        json_quoted(w, e->message[0] ? e->message : NULL);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_signal(const struct taken_thread *thread, struct json_writer *w)
{
    json_key(w, "died_of");
    json_quoted(w, thread->signal);
    json_key(w, "fault_address");
    if (thread->has_fault)
        json_hex(w, thread->fault_addr);
    else
        json_absent(w);
}

static void write_thread(const struct stack_view *view, const struct stack_row *row, bool managed_only,
                         struct json_writer *w)
{
    struct buffer wait;
    buffer_init(&wait, 1 << 16);
    stack_row_wait(view, row, &wait);
    json_begin_object(w);
    json_key(w, "tid");
    json_i64(w, row->thread->tid);
    json_key(w, "name");
    json_quoted(w, row->name[0] ? row->name : NULL);
    json_key(w, "state");
    json_quoted(w, stack_row_state(row));
    json_key(w, "managed");
    json_bool(w, row->managed);
    json_key(w, "idle");
    json_quoted(w, row->idle);
    json_key(w, "waiting_on");
    if (wait.size)
        json_span(w, buffer_span(&wait));
    else
        json_absent(w);
    json_key(w, "lock");
    write_lock(view, row, w);
    write_frames(view, row, managed_only, w);
    write_signal(row->thread, w);
    write_exceptions(view, row->thread, w);
    json_key(w, "stopped_ms");
    if (row->thread->stopped_ns)
        json_double(w, (double)row->thread->stopped_ns / 1e6);
    else
        json_absent(w);
    json_key(w, "problem");
    json_quoted(w, row->thread->problem);
    json_end_object(w);
    buffer_done(&wait);
}

void stack_view_json(const struct stack_view *view, bool managed_only, struct json_writer *w)
{
    const struct trace *t = &view->b.trace;
    const struct trace_process *process = &t->processes.rows[view->process];
    const char *name = trace_string(t, process->name), *version = trace_string(t, process->runtime_version);
    json_begin_object(w);
    json_key(w, "schema");
    json_quoted(w, "clrperf.stack/1");
    json_key(w, "process");
    json_u64(w, process->pid);
    json_key(w, "process_name");
    json_quoted(w, name[0] ? name : NULL);
    json_key(w, "runtime_version");
    json_quoted(w, version[0] ? version : NULL);
    json_key(w, "time_s");
    if (view->started_s > 0)
        json_double(w, view->started_s);
    else
        json_absent(w);
    json_key(w, "deadlocks");
    if (view->stacks->walk && view->locks_problem.kind == ERROR_NONE && !view->stacks->threads.other_count)
        write_deadlocks(view, w);
    else
        json_absent(w);
    json_key(w, "async");
    if (view->async)
        stack_async_json(view->async, w);
    else
        json_absent(w);
    json_key(w, "threads");
    json_begin_array(w);
    for (size_t i = 0; i < view->row_count; i++)
        if (!view->rows[i].hidden)
            write_thread(view, &view->rows[i], managed_only, w);
    json_end_array(w);
    json_key(w, "whole");
    json_u64(w, view->whole);
    json_key(w, "stopped_max_ms");
    if (view->stopped_count)
        json_double(w, (double)view->stopped_max_ns / 1e6);
    else
        json_absent(w);
    json_end_object(w);
}
