/*
 * read_pace: how soon what a process was sampled at is read from its memory, to name it.
 *
 * A process that ends takes its memory along, so what many of its samples lead to is read soon. What few lead
 * to waits, the longer the longer it goes on like that: a service's long tail never ends, and all of it is
 * read as the recording ends.
 */
#ifndef CLRPERF_COLLECT_READ_PACE_H
#define CLRPERF_COLLECT_READ_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

/* Of one process. Times are CLOCK_MONOTONIC. */
struct read_pace {
    uint64_t began_ns, read_ns;
    size_t locations, stacks, codes; /* of the trace when it was read last */
    uint64_t samples;                /* of the process, since it began */
    uint64_t unread;                 /* those since it was read last that lead to what was not read */
};

void read_pace_begin(struct read_pace *pace, uint64_t now_ns);
/* It is read now. */
void read_pace_read(struct read_pace *pace, const struct trace *t, uint64_t now_ns);
/* Whether there is anything new that is worth it by now. */
bool read_pace_is_due(const struct read_pace *pace, const struct trace *t, uint64_t now_ns);
/* Whether there is anything new. */
bool read_pace_has_news(const struct read_pace *pace, const struct trace *t);
bool read_pace_leads_on(const struct read_pace *pace, const struct trace *t, uint32_t stack);

/* A sample of the process came. */
static inline void read_pace_sample(struct read_pace *pace, const struct trace *t, uint32_t stack)
{
    pace->samples++;
    /* older stacks lead to what was there */
    if (stack >= pace->stacks)
        pace->unread += read_pace_leads_on(pace, t, stack);
}

#endif
