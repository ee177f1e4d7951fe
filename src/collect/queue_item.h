/*
 * queue_item: what waits in a recorder's time_queue.
 */
#ifndef CLRPERF_COLLECT_QUEUE_ITEM_H
#define CLRPERF_COLLECT_QUEUE_ITEM_H

enum queue_item_kind { QUEUE_PERF_RECORD, QUEUE_CODE, QUEUE_EVENT };

#endif
