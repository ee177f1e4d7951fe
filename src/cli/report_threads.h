/*
 * report_threads: which threads a report shows, in which order.
 */
#ifndef CLRPERF_CLI_REPORT_THREADS_H
#define CLRPERF_CLI_REPORT_THREADS_H

#include "analyse/profile.h"

/* The heaviest `top`; 0: all, as they were first seen. Borrows from `p`; the caller frees the array. */
const struct profile_thread **report_threads(const struct profile *p, size_t top, size_t *out_count);

#endif
