/*
 * capture_process: whether a process of a capture still runs here.
 */
#ifndef CLRPERF_CLI_CAPTURE_PROCESS_H
#define CLRPERF_CLI_CAPTURE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

/* The process that the capture knows, not another one that has its number now. */
bool capture_process_lives(const struct trace_process *row);
/*
 * The same for a process of an imported file, which is known by pid only: it must have been there, as a .NET
 * process, when the file was made. If so, its row says what it is.
 */
bool capture_process_find(struct trace *t, uint32_t process);

#endif
