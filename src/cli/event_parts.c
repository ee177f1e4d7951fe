#include "cli/event_parts.h"

static bool read_part(const struct event_parts *parts, uint64_t from_ns, uint64_t to_ns, struct error *err);

static bool can_be_divided(const struct import_part *part)
{
    size_t used = 0;
    for (size_t i = 0; part->course.count && i < EVENT_COURSE_SLICES; i++)
        used += part->course.rows[0][i] > 0;
    return part->overflowed && used > 1;
}

/* Slices of its time together, as long as they have few enough events. */
static bool divide(const struct event_parts *parts, const struct import_part *part, struct error *err)
{
    const struct event_course *course = &part->course;
    uint64_t from_ns = part->from_ns, events = 0;
    for (size_t i = 0; i < EVENT_COURSE_SLICES; i++) {
        uint64_t more = course->rows[0][i];
        if (events && more && events + more > parts->events_max) {
            uint64_t to_ns = course->from_ns + course->slice_ns * i;
            if (!read_part(parts, from_ns, to_ns, err))
                return false;
            from_ns = to_ns;
            events = 0;
        }
        events += more;
    }
    return read_part(parts, from_ns, part->to_ns, err);
}

static bool read_part(const struct event_parts *parts, uint64_t from_ns, uint64_t to_ns, struct error *err)
{
    struct import_part part = { .from_ns = from_ns, .to_ns = to_ns, .events_max = parts->events_max };
    const struct import_options how = { .wants = parts->wants, .user = parts->values, .part = &part };
    struct capture c;
    bool ok = capture_read(parts->path, &how, &c, err);
    if (ok && can_be_divided(&part)) {
        capture_done(&c);
        ok = divide(parts, &part, err);
    } else if (ok) { /* a moment that has too many is cut */
        if (parts->names_code)
            capture_name(&c);
        ok = parts->part(parts->user, &c, to_ns == 0, err);
        capture_done(&c);
    }
    event_course_done(&part.course);
    return ok;
}

bool event_parts_each(const struct event_parts *parts, const struct import_part *first, struct error *err)
{
    return can_be_divided(first) ? divide(parts, first, err)
                                 : read_part(parts, first->from_ns, first->to_ns, err);
}
