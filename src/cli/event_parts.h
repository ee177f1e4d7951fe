/*
 * event_parts: the events of a file that has more of them than there should be in memory, part by part.
 *
 * The first reading finds how they are spread over the time; then the file is read once for each part of its
 * time that has few enough of them. A part that turns out to have too many is divided in the same way.
 */
#ifndef CLRPERF_CLI_EVENT_PARTS_H
#define CLRPERF_CLI_EVENT_PARTS_H

#include "cli/capture.h"

enum { EVENT_PARTS_EVENTS = 1 << 21 /* of a part */ };

/* One part, its code named when that was asked for; parts come in the order of time. False ends it. */
typedef bool event_part_fn(void *user, const struct capture *part, bool is_last, struct error *err);

struct event_parts {
    const char *path;
    import_wants_fn *wants; /* as capture_read() has them */
    const void *values;
    bool names_code;
    size_t events_max;
    event_part_fn *part;
    void *user;
};

/* `first` is how the whole was read, and found to be too much. */
bool event_parts_each(const struct event_parts *parts, const struct import_part *first, struct error *err);

#endif
