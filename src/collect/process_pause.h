/*
 * process_pause: lets a whole process stand still for a moment, so that its memory can be read as of one
 * time.
 *
 * By PTRACE_SEIZE and PTRACE_INTERRUPT of all its threads (ptrace(2)): no signal is sent, and a process that
 * is stopped already stays so. A child process of ours holds them, for a limited time; when it or we die, the
 * kernel lets them go on. Belongs to one thread.
 */
#ifndef CLRPERF_COLLECT_PROCESS_PAUSE_H
#define CLRPERF_COLLECT_PROCESS_PAUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum {
    PROCESS_PAUSE_STOP_MS = 1000,   /* for all threads to stop */
    PROCESS_PAUSE_TRACER_MS = 1000, /* before that, for who traces the process to let go of it */
    PROCESS_PAUSE_THREADS_MAX = 1 << 16,
};

struct process_pause;

/*
 * All threads stand still until process_pause_end(), or for `at_most_ms` at most. ERROR_TARGET: the process
 * is gone; ERROR_PERMISSION: no rights, or a debugger has it; ERROR_LIMIT: a thread did not stop in time.
 */
bool process_pause_begin(pid_t pid, unsigned at_most_ms, struct process_pause **out, struct error *err);
/*
 * Lets them go on; *out_stopped_ns is how long they stood still, from the first one on. False when they went
 * on before.
 */
bool process_pause_end(struct process_pause *pause, uint64_t *out_stopped_ns);

#endif
