/*
 * record_shortfall: why a recording has less than was asked for.
 */
#ifndef CLRPERF_CLI_RECORD_SHORTFALL_H
#define CLRPERF_CLI_RECORD_SHORTFALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/record_stats.h"

struct record_shortfall {
    const struct record_stats *stats;
    size_t targets;    /* processes that were chosen */
    pid_t only_target; /* 0: there are more, or none was chosen */
    bool launched;     /* one of them by us: that it ends is no surprise */
    uint64_t rate_hz;  /* 0: no samples were asked for */
};

/* On stderr; nothing where nothing is missing. */
void record_shortfall_tell(const struct record_shortfall *s);

#endif
