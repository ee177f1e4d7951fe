/*
 * task_spans: tasks of the task library, from when they are scheduled until they are done, and waits for
 * them.
 *
 * A task is "queued" from its scheduling until a thread begins it, then "run"; a "wait" is a
 * thread's that blocks for a task, an "await" an async method's. Each is named by the function that scheduled
 * the task, or that waits. Beside them are the activities of event sources (analyse/activity_spans.h).
 */
#ifndef CLRPERF_ANALYSE_TASK_SPANS_H
#define CLRPERF_ANALYSE_TASK_SPANS_H

#include "analyse/event_stacks.h"
#include "analyse/span_table.h"

struct task_spans {
    struct event_stacks stacks;
    struct span_table table;
    uint64_t malformed;
    uint64_t by_thread; /* activities of event sources that began in none: matched by thread */
    bool any;
};

/* The events that it is made of, and those of collections. */
bool task_spans_wants(const char *provider, uint32_t event_id);
void task_spans_init(struct task_spans *spans, const struct trace *t, bool raw_names, uint64_t from_ns,
                     uint64_t to_ns);
void task_spans_done(struct task_spans *spans);
bool task_spans_asked(const struct trace *t);

#endif
