/*
 * helper_process: a child that does for us what may never return, and is killed then.
 */
#ifndef CLRPERF_COLLECT_HELPER_PROCESS_H
#define CLRPERF_COLLECT_HELPER_PROCESS_H

#include <sys/types.h>

/*
 * In the child, first of all: it ends with the thread that made it, and holds nothing of ours open but
 * `keep`, if that is not -1. A counter or a socket would otherwise outlive our closing it for as long as the
 * child hangs. That the parent has ended already is for the caller to see.
 */
void helper_process_begin(int keep);
/*
 * Kills and reaps it. One that hangs where not even SIGKILL reaches is left to whoever reaps after us:
 * waiting for it is what must not happen.
 */
void helper_process_end(pid_t child);

#endif
