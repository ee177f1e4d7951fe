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
    uint64_t slice_ns;                     /* a power of two; 0: nothing was counted yet */
    unsigned slice_shift;                  /* which one */
    uint32_t (*rows)[EVENT_COURSE_SLICES]; /* by type */
    size_t count, capacity;                /* types are below */
};

void event_course_done(struct event_course *c);
/* The first of a type, or what no slice is there for: event_course_add() asks for both. */
void event_course_make_room(struct event_course *c, uint32_t type, uint64_t time_ns);
/* What is older than the first event counts with it. */
static inline void event_course_add(struct event_course *c, uint32_t type, uint64_t time_ns, uint64_t count)
{
    uint64_t since_ns = time_ns > c->from_ns ? time_ns - c->from_ns : 0;
    if (type >= c->count || since_ns >> c->slice_shift >= EVENT_COURSE_SLICES) {
        event_course_make_room(c, type, time_ns);
        since_ns = time_ns > c->from_ns ? time_ns - c->from_ns : 0;
    }
    c->rows[type][since_ns >> c->slice_shift] += (uint32_t)count;
}
/* The last time that counts in the same slice as this one, now and when slices are longer. */
static inline uint64_t event_course_same_until(const struct event_course *c, uint64_t time_ns)
{
    uint64_t since_ns = time_ns > c->from_ns ? time_ns - c->from_ns : 0;
    uint64_t last_ns = c->slice_ns ? since_ns | (c->slice_ns - 1) : since_ns;
    return last_ns > UINT64_MAX - c->from_ns ? UINT64_MAX : c->from_ns + last_ns;
}
/* The middle of a slice. */
static inline uint64_t event_course_time(const struct event_course *c, size_t slice)
{
    return c->from_ns + c->slice_ns * slice + c->slice_ns / 2;
}

#endif
