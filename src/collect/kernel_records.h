/*
 * kernel_records: what the kernel tells, taken out of its rings and followed in its order.
 *
 * Processes, threads and mappings are known to the trace at once, and a sample's stack is found while its
 * process is there; then it waits in a queue for what runtimes tell of its time. Belongs to one thread.
 */
#ifndef CLRPERF_COLLECT_KERNEL_RECORDS_H
#define CLRPERF_COLLECT_KERNEL_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time_queue.h"
#include "collect/perf_events.h"
#include "collect/sample_stacks.h"
#include "collect/watched_processes.h"
#include "trace/builder.h"

/* All borrowed. */
struct kernel_records_options {
    struct trace_builder *b;
    struct perf_events *events;
    struct watched_processes *watched;
    struct sample_stacks *stacks;
    struct time_queue *queue; /* where samples wait */
    bool everybody;           /* else only processes that the trace has, and who they start, are followed */
    bool from_exec;           /* what a process does before it calls exec does not count */
    bool kernel_chains;       /* no sample has stack bytes */
    unsigned tick_ms;         /* rings are read that often, also while much is to be done */
};

struct kernel_records_counts {
    uint64_t filtered;      /* samples of others */
    uint64_t lost;          /* in rings and in queues */
    uint64_t lost_in_rings; /* of these, as the kernel's records say */
    uint64_t throttled;
};

struct kernel_records;

struct kernel_records *kernel_records_new(const struct kernel_records_options *options);
/* NULL is fine. */
void kernel_records_free(struct kernel_records *records);
/*
 * Reads all rings and follows what they held, up to the time that it returns: what is newer can be in a ring
 * yet. The `last` time there is no such, and all is followed.
 */
uint64_t kernel_records_drain(struct kernel_records *records, bool last);
/*
 * For who is at something that takes long: reads the rings when it is time, so that they do not overflow.
 * After short work only some of the calls look at the clock.
 */
void kernel_records_relieve(struct kernel_records *records, bool after_long_work);
struct kernel_records_counts kernel_records_counts(const struct kernel_records *records);

#endif
