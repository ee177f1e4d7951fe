/*
 * record_progress: the line that shows a recording at work.
 *
 * On a terminal it is one line that changes; in a log it is a new line every ten seconds.
 */
#ifndef CLRPERF_CLI_RECORD_PROGRESS_H
#define CLRPERF_CLI_RECORD_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/record_stats.h"

struct record_progress_line {
    bool on, terminal, shown;
    bool samples, events; /* what is counted; set by the owner after the begin */
    uint64_t logged_ns;
    uint64_t seen_ns, seen_events, rate; /* of events */
};

/* `what` is recorded. `by_enter`: Enter ends it, too. */
void record_progress_begin(struct record_progress_line *line, const char *name, size_t processes,
                           const char *what, bool by_enter);
/* `duration_ns`: 0 when the recording has no fixed end. */
void record_progress_show(struct record_progress_line *line, const struct record_progress *now,
                          uint64_t duration_ns);
/* Takes the line away, so that something else can be printed. */
void record_progress_clear(struct record_progress_line *line);

#endif
