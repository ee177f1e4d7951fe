/*
 * stack_view: one look at a process's threads with everything that is shown of it.
 */
#ifndef CLRPERF_CLI_STACK_VIEW_H
#define CLRPERF_CLI_STACK_VIEW_H

#include "analyse/shown_stack.h"
#include "base/json_writer.h"
#include "collect/process_stacks.h"

struct stack_row {
    const struct stacks_thread *thread; /* of the look */
    struct shown_stack *stack;          /* owned, or NULL when there is none: thread->problem */
    bool managed;                       /* managed code is on its stack */
    const char *idle;                   /* what it is there for when it is idle by design, or NULL */
    const char *waits;                  /* managed_wait_name(), or NULL */
    uint32_t node;                      /* of the profile: equal stacks have equal ones */
    bool shown;                         /* in a group that was shown already */
};

struct stack_view {
    const struct process_stacks *stacks; /* borrowed */
    struct trace_builder b;
    uint32_t process; /* row of the trace */
    struct profile *p;
    struct stack_row *rows; /* as stacks->threads */
    size_t row_count;
    uint64_t stopped_max_ns, stopped_sum_ns;
    size_t stopped_count, whole;
    double started_s; /* CLOCK_REALTIME of the look; 0: of a core dump */
};

/* After the stacks were unwound into view->b and its names were found. */
bool stack_view_make(struct stack_view *view, const struct process_stacks *stacks, bool raw_names,
                     struct error *err);
void stack_view_done(struct stack_view *view);

/* What a thread waits for, in one text: .NET's words, with the kernel's behind. "" when it runs. */
void stack_row_wait(const struct stack_row *row, struct buffer *out);
/* "running", "sleeping", ...; NULL when unknown */
const char *stack_row_state(const struct stack_row *row);

struct stack_print {
    bool managed_only, idle_too;
    size_t width; /* of the terminal; 0: any */
};

/* For people. */
void stack_view_text(struct stack_view *view, const struct stack_print *how, struct buffer *out);
/* As CONTRACT says, clrperf.stack/1. */
void stack_view_json(const struct stack_view *view, bool managed_only, struct json_writer *w);

#endif
