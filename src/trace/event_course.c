#include "trace/event_course.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { FIRST_SLICE_NS = 1 << 16 };

void event_course_done(struct event_course *c)
{
    free(c->rows);
    *c = (struct event_course){ 0 };
}

static void course_fold(struct event_course *c)
{
    c->slice_ns *= 2;
    for (size_t type = 0; type < c->count; type++) {
        uint32_t *slices = c->rows[type];
        for (size_t i = 0; i < EVENT_COURSE_SLICES / 2; i++)
            slices[i] = slices[2 * i] + slices[2 * i + 1];
        memset(slices + EVENT_COURSE_SLICES / 2, 0, EVENT_COURSE_SLICES / 2 * sizeof *slices);
    }
}

static void course_room(struct event_course *c, uint32_t type)
{
    if (type < c->count)
        return;
    c->rows = mem_grow(c->rows, &c->capacity, (size_t)type + 1, sizeof *c->rows);
    memset(c->rows + c->count, 0, ((size_t)type + 1 - c->count) * sizeof *c->rows);
    c->count = (size_t)type + 1;
}

void event_course_add(struct event_course *c, uint32_t type, uint64_t time_ns)
{
    if (!c->slice_ns) {
        c->from_ns = time_ns;
        c->slice_ns = FIRST_SLICE_NS;
    }
    course_room(c, type);
    uint64_t since_ns = time_ns > c->from_ns ? time_ns - c->from_ns : 0;
    while (since_ns / c->slice_ns >= EVENT_COURSE_SLICES)
        course_fold(c);
    c->rows[type][since_ns / c->slice_ns]++;
}
