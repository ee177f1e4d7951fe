#include "trace/event_course.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { FIRST_SLICE_SHIFT = 16 };

void event_course_done(struct event_course *c)
{
    free(c->rows);
    *c = (struct event_course){ 0 };
}

static void course_fold(struct event_course *c)
{
    c->slice_shift++;
    c->slice_ns *= 2;
    for (size_t type = 0; type < c->count; type++) {
        uint32_t *slices = c->rows[type];
        for (size_t i = 0; i < EVENT_COURSE_SLICES / 2; i++)
            slices[i] = slices[2 * i] + slices[2 * i + 1];
        memset(slices + EVENT_COURSE_SLICES / 2, 0, EVENT_COURSE_SLICES / 2 * sizeof *slices);
    }
}

void event_course_make_room(struct event_course *c, uint32_t type, uint64_t time_ns)
{
    if (!c->slice_ns) {
        c->from_ns = time_ns;
        c->slice_shift = FIRST_SLICE_SHIFT;
        c->slice_ns = (uint64_t)1 << FIRST_SLICE_SHIFT;
    }
    if (type >= c->count) {
        c->rows = mem_grow(c->rows, &c->capacity, (size_t)type + 1, sizeof *c->rows);
        memset(c->rows + c->count, 0, ((size_t)type + 1 - c->count) * sizeof *c->rows);
        c->count = (size_t)type + 1;
    }
    while (time_ns > c->from_ns && (time_ns - c->from_ns) >> c->slice_shift >= EVENT_COURSE_SLICES)
        course_fold(c);
}
