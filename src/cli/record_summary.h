/*
 * record_summary: what a recording says of itself when it is over.
 */
#ifndef CLRPERF_CLI_RECORD_SUMMARY_H
#define CLRPERF_CLI_RECORD_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "clr/stopping_event.h"
#include "collect/record_stats.h"

struct record_summary {
    const char *path;
    const struct record_stats *stats;
    const struct trace *trace; /* or NULL */
    uint64_t file_bytes, stop_to_closed_ns;
    bool samples, events; /* what was recorded */
};

/* One document on standard output. */
bool record_summary_json(const struct record_summary *s, struct error *err);
/* Two lines on stderr. */
void record_summary_text(const struct record_summary *s);
/* A warning on stderr where the recording ended without the event that was to end it; NULL: there was none.
 */
void record_summary_warn_stopping(const struct record_stats *stats, const struct stopping_event *stopping);

#endif
