/*
 * queue_item: what waits in a recorder's queues: what the kernel tells until all rings were read, stacks and
 * what runtimes tell until each of them can have told of the same time.
 */
#ifndef CLRPERF_COLLECT_QUEUE_ITEM_H
#define CLRPERF_COLLECT_QUEUE_ITEM_H

enum queue_item_kind { QUEUE_PERF_RECORD, QUEUE_SAMPLE, QUEUE_CODE, QUEUE_EVENT };

#endif
