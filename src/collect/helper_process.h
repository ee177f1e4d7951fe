/*
 * helper_process: a child that does for us what may never return, and is killed then.
 *
 * What works in memory that it shares with us, and asks nothing but the kernel, shares all our memory: such
 * a child takes no time to start or to end, and while it lives we need not copy each page that we write to.
 */
#ifndef CLRPERF_COLLECT_HELPER_PROCESS_H
#define CLRPERF_COLLECT_HELPER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * In the child, first of all: it ends with the thread that made it, and holds nothing of ours open but
 * `keep`, if that is not -1. A counter or a socket would otherwise outlive our closing it for as long as the
 * child hangs. That the parent has ended already is for the caller to see.
 */
void helper_process_begin(int keep);
/* Never allocates, takes no lock and prints nothing: it may be killed at any point, and we go on. */
typedef void helper_serve_fn(void *user);
/*
 * Starts a child that runs `serve` in our memory, with no file open and all signals held back, and ends when
 * that returns, or with us. False when there can be none. The caller ends it by helper_process_end().
 */
bool helper_process_share(helper_serve_fn *serve, void *user, pid_t *out_child);
/*
 * Kills and reaps it. One that hangs where not even SIGKILL reaches is left to whoever reaps after us:
 * waiting for it is what must not happen. False then: it may still write to memory that it shares with us.
 */
bool helper_process_end(pid_t child);

#endif
