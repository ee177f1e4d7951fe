/*
 * row_times: stretches of time by row of some table, and how much time those of a row cover together.
 */
#ifndef CLRPERF_ANALYSE_ROW_TIMES_H
#define CLRPERF_ANALYSE_ROW_TIMES_H

#include <stddef.h>
#include <stdint.h>

struct row_time {
    uint64_t from_ns, to_ns;
    uint32_t row;
};

/* Zeroed it is empty. */
struct row_times {
    struct row_time *rows;
    size_t count, capacity;
};

void row_times_done(struct row_times *times);
void row_times_add(struct row_times *times, uint32_t row, uint64_t from_ns, uint64_t to_ns);
/* Adds to each row's sum what it has, counting once what several stretches cover. Their order is lost. */
void row_times_sum(struct row_times *times, uint64_t *sum_ns);

#endif
