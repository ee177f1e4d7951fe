/*
 * report_csv: a report's rows as comma-separated values, with the names and units that its JSON has.
 */
#ifndef CLRPERF_CLI_REPORT_CSV_H
#define CLRPERF_CLI_REPORT_CSV_H

#include "analyse/call_neighbours.h"
#include "analyse/hot.h"
#include "base/buffer.h"

/* `top` 0: all rows. */
void report_csv_hot(const struct profile *p, const struct hot_table *table, enum hot_by by, size_t top,
                    struct buffer *out);
/* Without the function itself. */
void report_csv_neighbours(const struct profile *p, const struct call_neighbours *n, size_t top,
                           struct buffer *out);
/* The heaviest `top` threads; 0: all, as they were first seen. */
void report_csv_threads(const struct profile *p, size_t top, struct buffer *out);

#endif
