#include "collect/read_pace.h"

#define SECOND_NS UINT64_C(1000000000)

/* Between reads: parts of the time since it began. */
enum {
    SOON_AGE = 3,
    SOON_S_MAX = 4,
    LATE_AGE = 1,
    LATE_S_MAX = 60,
    SOON_SAMPLES = 256, /* one of so many leads to what was not read: it is read soon */
};

void read_pace_begin(struct read_pace *pace, uint64_t now_ns)
{
    *pace = (struct read_pace){ .began_ns = now_ns, .read_ns = now_ns };
}

void read_pace_read(struct read_pace *pace, const struct trace *t, uint64_t now_ns)
{
    pace->read_ns = now_ns;
    pace->locations = t->locations.count;
    pace->stacks = t->stacks.count;
    pace->codes = t->codes.count;
    pace->unread = 0;
}

bool read_pace_has_news(const struct read_pace *pace, const struct trace *t)
{
    return t->locations.count != pace->locations;
}

static uint64_t pause_ns(const struct read_pace *pace, unsigned age_part, unsigned seconds_max)
{
    uint64_t part_ns = (pace->read_ns - pace->began_ns) / age_part;
    return part_ns < seconds_max * SECOND_NS ? part_ns : seconds_max * SECOND_NS;
}

bool read_pace_is_due(const struct read_pace *pace, const struct trace *t, uint64_t now_ns)
{
    bool many = pace->unread * SOON_SAMPLES > pace->samples;
    uint64_t pause = many ? pause_ns(pace, SOON_AGE, SOON_S_MAX) : pause_ns(pace, LATE_AGE, LATE_S_MAX);
    return read_pace_has_news(pace, t) && now_ns - pace->read_ns >= pause;
}

/* Of no method that is known, or of one that became known since. */
static bool is_unread(const struct read_pace *pace, const struct trace *t, uint32_t location)
{
    const struct trace_location *row = &t->locations.rows[location];
    if (location < pace->locations || !row->process)
        return false;
    return row->code ? row->code >= pace->codes : trace_location_may_be_jitted(t, row);
}

/* Only in what is new of a stack can be what is new. */
bool read_pace_leads_on(const struct read_pace *pace, const struct trace *t, uint32_t stack)
{
    while (stack >= STACK_ROOTS && stack >= pace->stacks) {
        if (is_unread(pace, t, t->stacks.rows[stack].location))
            return true;
        stack = t->stacks.rows[stack].parent;
    }
    return false;
}
