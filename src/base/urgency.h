/*
 * urgency: a short piece of work that somebody waits for, done before all else on a machine whose CPUs are
 * taken.
 *
 * A nice value would not do: where the kernel groups by session (sched_autogroup) or by service, it counts
 * among our own threads only. So the thread, and those it starts meanwhile, get a real-time policy. What that
 * takes from others is bounded whatever happens: a thread of ours ends it. Nobody else does: to be as
 * everybody again for the last steps of a process is to wait behind everybody with them.
 */
#ifndef CLRPERF_BASE_URGENCY_H
#define CLRPERF_BASE_URGENCY_H

#include <stdbool.h>

/* Of CPU time: enough for what somebody waits for, little for who shares the machine. */
enum { URGENCY_MS = 250 };

/*
 * From now on until the process took `most_ms` of CPU time, of all threads, or ends. Once in a process. False
 * where it is not ours to ask for, or where the user chose a policy for us. Processes that are forked
 * meanwhile keep it.
 */
bool urgency_begin(unsigned most_ms);

#endif
