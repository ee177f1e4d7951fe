/*
 * fatal_signal: signals that end a process and leave a core dump, by their numbers on Linux.
 */
#ifndef CLRPERF_COLLECT_FATAL_SIGNAL_H
#define CLRPERF_COLLECT_FATAL_SIGNAL_H

#include <stdint.h>

/* "SIGSEGV"; NULL when it is no such signal. Specified in signal(7); equal on x86-64 and arm64. */
const char *fatal_signal_name(uint16_t number);

#endif
