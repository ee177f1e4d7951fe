#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "cli/stack_view.h"
#include "cli/standard_output.h"

enum { THREADS_LISTED = 12, IDLE_KINDS_MAX = 16 };

#define GROUP_SHOWN SIZE_MAX /* ahead of the others, alone */

static void append_safe(struct buffer *out, const char *text)
{
    utf8_escape(out, span_of(text, strlen(text)));
}

static void text_head(const struct stack_view *view, struct buffer *out)
{
    const struct trace *t = &view->b.trace;
    const struct trace_process *process = &t->processes.rows[view->process];
    const char *version = trace_string(t, process->runtime_version);
    append_safe(out, trace_string(t, process->name));
    buffer_format(out, " (pid %" PRIu32 ")", process->pid);
    if (version[0]) {
        buffer_string(out, ", .NET ");
        append_safe(out, version);
    }
    buffer_format(out, ": %zu thread%s, %zu stack%s whole", view->shown_count,
                  view->shown_count == 1 ? "" : "s", view->whole, view->whole == 1 ? "" : "s");
    if (view->stopped_count)
        buffer_format(out, "; each stopped for %s on average, %s at most",
                      units_duration(view->stopped_sum_ns / view->stopped_count).text,
                      units_duration(view->stopped_max_ns).text);
    buffer_string(out, "\n");
}

/* Threads whose stacks are of the same frames. */
static bool same_group(const struct stack_row *a, const struct stack_row *b)
{
    return a->stack && b->stack && a->node == b->node;
}

static void text_thread_name(const struct stack_row *row, struct buffer *out)
{
    buffer_format(out, "%d", (int)row->thread->tid);
    if (row->name[0]) {
        buffer_string(out, " \"");
        append_safe(out, row->name);
        buffer_string(out, "\"");
    }
}

static void text_state(const struct stack_view *view, const struct stack_row *row, struct buffer *out)
{
    const char *state = stack_row_state(row);
    struct buffer wait;
    buffer_init(&wait, 1 << 16);
    stack_row_wait(view, row, &wait);
    if (state)
        buffer_format(out, "  %s", state);
    if (wait.size) {
        buffer_string(out, state ? ", " : "  ");
        buffer_string(out, "in ");
        utf8_escape(out, buffer_span(&wait));
    }
    buffer_done(&wait);
}

static void text_line(const struct stack_view *view, uint32_t file, uint32_t line, bool of_method,
                      struct buffer *out)
{
    if (!line)
        return;
    buffer_string(out, " in ");
    append_safe(out, trace_string(&view->b.trace, file));
    buffer_format(out, ":%s%" PRIu32, of_method ? "~" : "", line);
}

/* What the compiler inlined at a frame, which is below. */
static void text_inlined(const struct stack_view *view, const struct shown_frame *frame, struct buffer *out)
{
    const struct trace *t = &view->b.trace;
    for (unsigned i = 0; i < frame->location->inlined_count; i++) {
        const struct trace_inlined *inlined = &t->inlined.rows[frame->location->inlined + i];
        const struct trace_function *function = &t->functions.rows[inlined->function];
        buffer_string(out, "    ");
        append_safe(out, trace_string(t, function->name));
        buffer_string(out, " (inlined)");
        text_line(view, inlined->file, inlined->line, false, out);
        buffer_string(out, "\n");
    }
}

/* Its line, and those of what was inlined there, without the last's end. */
static void text_frame(const struct stack_view *view, const struct shown_frame *frame, struct buffer *out)
{
    const char *module = frame->frame->module, *name = frame->frame->name;
    text_inlined(view, frame, out);
    buffer_format(out, "    %s", name);
    if (frame->frame->unnamed)
        buffer_format(out, " 0x%" PRIx64, frame->location->addr);
    if (module[0] && strncmp(name, module, strlen(module)) != 0)
        buffer_format(out, "  (%s)", module);
    text_line(view, frame->location->file, frame->location->line, frame->location->line_of_method, out);
}

static void text_times(uint32_t times, struct buffer *out)
{
    if (times > 1)
        buffer_format(out, " (%" PRIu32 " times)", times);
    if (times)
        buffer_string(out, "\n");
}

static void text_end(const struct shown_stack *stack, struct buffer *out)
{
    if (stack->end == STACK_BROKEN)
        buffer_string(out, "    [broken: no caller could be made out]\n");
    else if (stack->end == STACK_TRUNCATED && stack->count >= TRACE_STACK_DEPTH_MAX)
        buffer_format(out, "    [truncated: there are more callers than the %d frames that are looked at]\n",
                      TRACE_STACK_DEPTH_MAX);
    else if (stack->end == STACK_TRUNCATED)
        buffer_string(out, "    [truncated: there are more callers]\n");
}

/* A recursion's frames that look the same are one line. */
static void text_frames(const struct stack_view *view, const struct stack_row *row, bool managed_only,
                        struct buffer *out)
{
    struct buffer text, last;
    uint32_t times = 0;
    buffer_init(&text, OUTPUT_BYTES_MAX);
    buffer_init(&last, OUTPUT_BYTES_MAX);
    for (size_t i = 0; i < row->stack->count; i++) {
        const struct shown_frame *frame = &row->stack->frames[i];
        if (managed_only && !shown_frame_is_managed(frame))
            continue;
        buffer_clear(&text);
        text_frame(view, frame, &text);
        if (times && span_equals(buffer_span(&text), buffer_span(&last))) {
            times++;
            continue;
        }
        text_times(times, out);
        times = 1;
        buffer_append(out, text.data, text.size);
        struct buffer swap = last;
        last = text;
        text = swap;
    }
    text_times(times, out);
    text_end(row->stack, out);
    buffer_done(&text);
    buffer_done(&last);
}

/* Marks the threads that are shown with row `first`; returns how many there are. */
static size_t make_group(struct stack_view *view, size_t first, bool idle_too)
{
    size_t count = 0;
    for (size_t i = first; i < view->row_count; i++) {
        struct stack_row *row = &view->rows[i];
        if (row->group || row->hidden || !same_group(&view->rows[first], row) || (row->idle && !idle_too))
            continue;
        row->group = first + 1;
        count++;
    }
    return count;
}

static void text_group(struct stack_view *view, size_t first, const struct stack_print *how,
                       struct buffer *out)
{
    size_t count = make_group(view, first, how->idle_too), listed = 0;
    buffer_string(out, "\n");
    if (count > 1)
        buffer_format(out, "%zu threads with this stack:\n", count);
    for (size_t i = first; i < view->row_count && listed < count; i++) {
        const struct stack_row *row = &view->rows[i];
        if (row->group != first + 1)
            continue;
        if (listed++ == THREADS_LISTED) {
            buffer_format(out, "and %zu more\n", count - THREADS_LISTED);
            break;
        }
        buffer_string(out, "thread ");
        text_thread_name(row, out);
        text_state(view, row, out);
        buffer_string(out, "\n");
    }
    text_frames(view, &view->rows[first], how->managed_only, out);
}

static void text_deadlock(struct stack_view *view, uint32_t cycle, const struct stack_print *how,
                          struct buffer *out)
{
    size_t first = stack_view_cycle(view, cycle), count = 0;
    bool asked_for = false;
    for (size_t i = 0; i < view->row_count; i++) {
        count += view->rows[i].cycle == cycle;
        asked_for |= view->rows[i].cycle == cycle && !view->rows[i].hidden;
    }
    if (!asked_for)
        return;
    buffer_format(out, "\ndeadlock: %zu threads wait for each other\n", count);
    for (size_t pass = 0, at = first; pass < 2 * count && at < view->row_count; pass++) {
        struct stack_row *row = &view->rows[at];
        buffer_string(out, pass < count ? "  thread " : "\nthread ");
        text_thread_name(row, out);
        if (pass < count) {
            struct buffer lock;
            buffer_init(&lock, 1 << 16);
            stack_row_lock(view, row, &lock);
            buffer_string(out, " waits for the ");
            utf8_escape(out, buffer_span(&lock));
            buffer_string(out, row->lock.timed ? ", for a limited time\n" : "\n");
            buffer_done(&lock);
        } else {
            text_state(view, row, out);
            buffer_string(out, "\n");
            text_frames(view, row, how->managed_only, out);
            row->group = GROUP_SHOWN;
        }
        at = row->lock.owner;
    }
}

static void text_exceptions(const struct stack_view *view, struct buffer *out)
{
    for (size_t i = 0; i < view->exception_count; i++) {
        const struct stack_exception *e = &view->exceptions[i];
        buffer_string(out, i ? "  caused by " : "last exception of the thread: ");
        append_safe(out, e->type);
        buffer_string(out, e->message[0] ? ": " : "");
        append_safe(out, e->message);
        buffer_string(out, "\n");
    }
}

/* Who ended the process, and what it was at. */
static void text_end_of_process(struct stack_view *view, const struct stack_print *how, struct buffer *out)
{
    for (size_t i = 0; i < view->row_count; i++) {
        struct stack_row *row = &view->rows[i];
        if (!row->thread->signal || row->hidden)
            continue;
        buffer_format(out, "\nended by %s", row->thread->signal);
        if (row->thread->has_fault)
            buffer_format(out, " at address 0x%" PRIx64, row->thread->fault_addr);
        buffer_string(out, "\n");
        text_exceptions(view, out);
        buffer_string(out, "thread ");
        text_thread_name(row, out);
        buffer_string(out, "\n");
        if (row->stack)
            text_frames(view, row, how->managed_only, out);
        row->group = GROUP_SHOWN;
    }
}

static void text_idle(const struct stack_view *view, struct buffer *out)
{
    const char *kinds[IDLE_KINDS_MAX];
    size_t counts[IDLE_KINDS_MAX] = { 0 }, kind_count = 0, all = 0;
    for (size_t i = 0; i < view->row_count; i++) {
        const char *kind = view->rows[i].idle;
        size_t k = 0;
        if (!kind)
            continue;
        while (k < kind_count && strcmp(kinds[k], kind) != 0)
            k++;
        if (k == IDLE_KINDS_MAX)
            continue;
        if (k == kind_count)
            kinds[kind_count++] = kind;
        counts[k]++;
        all++;
    }
    if (all == 0)
        return;
    buffer_format(out, "\n%zu idle thread%s folded (--idle shows %s):", all, all == 1 ? "" : "s",
                  all == 1 ? "it" : "them");
    for (size_t k = 0; k < kind_count; k++)
        buffer_format(out, "%s %zu %s", k ? "," : "", counts[k], kinds[k]);
    buffer_string(out, "\n");
}

static void text_problems(const struct stack_view *view, struct buffer *out)
{
    for (size_t i = 0; i < view->row_count; i++) {
        const struct stack_row *row = &view->rows[i];
        if (row->stack || row->hidden)
            continue;
        buffer_string(out, "\nthread ");
        text_thread_name(row, out);
        text_state(view, row, out);
        buffer_string(out, "\n    no stack: ");
        append_safe(out, row->thread->problem ? row->thread->problem : "unknown");
        buffer_string(out, "\n");
    }
}

void stack_view_text(struct stack_view *view, const struct stack_print *how, struct buffer *out)
{
    text_head(view, out);
    text_end_of_process(view, how, out);
    for (uint32_t cycle = 1; cycle <= view->deadlocks; cycle++)
        text_deadlock(view, cycle, how, out);
    if (view->async)
        stack_async_text(view->async, out);
    for (size_t i = 0; i < view->row_count; i++) {
        const struct stack_row *row = &view->rows[i];
        if (row->stack && !row->group && !row->hidden && !(row->idle && !how->idle_too))
            text_group(view, i, how, out);
    }
    text_problems(view, out);
    if (!how->idle_too)
        text_idle(view, out);
}
