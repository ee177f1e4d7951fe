/*
 * runtime_log: the events that .NET runtimes tell of, on their way into a trace.
 *
 * They wait in the recorder's queue, so that they meet the threads and stacks of their time.
 */
#ifndef CLRPERF_COLLECT_RUNTIME_LOG_H
#define CLRPERF_COLLECT_RUNTIME_LOG_H

#include <stdint.h>

#include "base/cursor.h"
#include "collect/record_queue.h"
#include "collect/runtime_session.h"
#include "trace/builder.h"

/* The process's runtime tells of its collections from now on. Returns the subscription. */
uint32_t runtime_log_begin(struct trace_builder *b, uint32_t process);
void runtime_log_end(struct trace_builder *b, uint32_t subscription);
/* Puts an event of the process's into the queue. */
void runtime_log_add(struct trace_builder *b, uint32_t process, const struct runtime_event *event,
                     struct record_queue *queue);
/* One item of the queue's, in its turn. */
void runtime_log_apply(struct trace_builder *b, struct span item);

#endif
