/*
 * question_events: the events themselves, as a table, JSON lines and CSV.
 */
#ifndef CLRPERF_CLI_QUESTION_EVENTS_H
#define CLRPERF_CLI_QUESTION_EVENTS_H

#include "analyse/event_counts.h"
#include "analyse/native_leaf.h"
#include "cli/event_choice.h"
#include "cli/question_put.h"

/* What is asked, and where the answer comes from. */
struct events_answer {
    struct question_scope scope;
    struct event_wanted wanted;
    struct event_query query;
    struct event_stacks stacks;
    struct native_leaves leaves;
    uint64_t top;                  /* rows; 0: all */
    uint64_t from_ns, duration_ns; /* the time that is asked about */
    bool stacks_shown;
    bool has_processes;     /* rows say whose event it is */
    uint64_t shown, more;   /* rows so far, and events that were left out behind them */
    bool is_first, is_last; /* of the parts that it is answered in */
    /* some event so far has the field */
    bool conditions_known[EVENT_CONDITIONS_MAX], columns_known[EVENT_COLUMNS_MAX];
};

/* The event's type, for what its schema does not say. */
static inline const struct trace_event_type *events_type(const struct events_answer *a, uint32_t event)
{
    return &a->scope.trace->event_types.rows[a->scope.trace->events.rows[event].type];
}

/* Of events of a kind, in the time that is asked about; 0 when that is not known. */
static inline double events_per_s(const struct events_answer *a, const struct event_count *row)
{
    return a->duration_ns ? (double)row->count * 1e9 / (double)a->duration_ns : 0;
}

bool question_events_json(struct events_answer *a, struct error *err);
bool question_events_json_counts(struct events_answer *a, struct error *err);

#endif
