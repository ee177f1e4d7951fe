/*
 * event_choice: which events of a capture are looked at, and what of them; options of `report FILE events`.
 */
#ifndef CLRPERF_CLI_EVENT_CHOICE_H
#define CLRPERF_CLI_EVENT_CHOICE_H

#include "analyse/event_query.h"
#include "base/arena.h"
#include "cli/option.h"

enum { EVENT_CONDITIONS_MAX = 16, EVENT_COLUMNS_MAX = 64 };

struct event_choice {
    const char *provider, *text, *columns;
    struct option_list where;
    bool counts, samples, stacks;
};

extern const struct option_spec event_choice_specs[];

/* What they say, taken apart. */
struct event_wanted {
    struct event_condition conditions[EVENT_CONDITIONS_MAX];
    size_t condition_count;
    const char *columns[EVENT_COLUMNS_MAX]; /* names of fields */
    size_t column_count;
    struct arena texts; /* the names and values */
};

/* Fails with ERROR_USAGE; there is nothing to be undone then. */
bool event_wanted_read(const struct event_choice *choice, struct event_wanted *out, struct error *err);
void event_wanted_done(struct event_wanted *w);

#endif
