/*
 * runtime_log: the events that .NET runtimes tell of, on their way into a trace.
 *
 * They wait in the recorder's queue, so that they meet the threads and methods of their time.
 */
#ifndef CLRPERF_COLLECT_RUNTIME_LOG_H
#define CLRPERF_COLLECT_RUNTIME_LOG_H

#include <stdint.h>

#include "base/cursor.h"
#include "base/time_queue.h"
#include "collect/queue_item.h"
#include "collect/runtime_session.h"
#include "trace/builder.h"

/* Of one session: rows of trace.subscriptions. */
struct runtime_log {
    uint32_t first, count;
};

/* The process's runtime tells of these providers from now on. */
struct runtime_log runtime_log_begin(struct trace_builder *b, uint32_t process,
                                     const struct event_providers *told);
void runtime_log_end(struct trace_builder *b, const struct runtime_log *log);
/* Puts an event of the process's into the queue. `tid`: our number of its thread; 0: not known. */
void runtime_log_add(struct trace_builder *b, uint32_t process, uint32_t tid,
                     const struct runtime_event *event, struct time_queue *queue);
/* One item of the queue's, in its turn. */
void runtime_log_apply(struct trace_builder *b, struct span item);

#endif
