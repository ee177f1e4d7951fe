/*
 * stop_signal: the signals that end a recording in order.
 */
#ifndef CLRPERF_CLI_STOP_SIGNAL_H
#define CLRPERF_CLI_STOP_SIGNAL_H

#include <signal.h>

/* From now on SIGINT, SIGTERM and SIGHUP only set what is returned, to their number. */
const volatile sig_atomic_t *stop_signal_catch(void);

#endif
