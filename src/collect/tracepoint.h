/*
 * tracepoint: what the kernel says of one of its tracepoints.
 *
 * It says so in tracefs, which many machines mount only when somebody asks for it. Where it is not mounted
 * one is mounted for us alone, in no folder, and is gone with the descriptor (fsopen(2), Linux 5.2;
 * CAP_SYS_ADMIN).
 */
#ifndef CLRPERF_COLLECT_TRACEPOINT_H
#define CLRPERF_COLLECT_TRACEPOINT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

enum { TRACEPOINT_FORMAT_BYTES_MAX = 16 << 10 };

/* The text that read/tracepoint_format reads, of "sched/sched_switch". ERROR_PERMISSION where only root may
 * look, or mount; ERROR_UNSUPPORTED where the kernel has no such tracepoint. */
bool tracepoint_read_format(const char *name, struct buffer *out, struct error *err);

#endif
