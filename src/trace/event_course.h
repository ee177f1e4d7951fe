/*
 * event_course: how many events of each type came when, of events that are counted and not kept.
 *
 * How long it will take is not known while they come: slices of time become twice as long whenever the last
 * one is full, and what was counted in two of them is then counted in one.
 */
#ifndef CLRPERF_TRACE_EVENT_COURSE_H
#define CLRPERF_TRACE_EVENT_COURSE_H

#include <stddef.h>
#include <stdint.h>

enum { EVENT_COURSE_SLICES = 256 };

struct event_course {
    uint64_t from_ns;                      /* of the first event */
    uint64_t slice_ns;                     /* 0: nothing was counted yet */
    uint32_t (*rows)[EVENT_COURSE_SLICES]; /* by type */
    size_t count, capacity;                /* types are below */
};

void event_course_done(struct event_course *c);
/* What is older than the first event counts with it. */
void event_course_add(struct event_course *c, uint32_t type, uint64_t time_ns);
/* The middle of a slice. */
static inline uint64_t event_course_time(const struct event_course *c, size_t slice)
{
    return c->from_ns + c->slice_ns * slice + c->slice_ns / 2;
}

#endif
