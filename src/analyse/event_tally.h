/*
 * event_tally: events counted and weighed by what they say and where they happened, and grouped.
 *
 * A row is one text (a type), one detail (a message), one stack of an event_stacks, and one process. Groups
 * put rows together that have a part of it in common; each knows its rows, the heaviest first.
 */
#ifndef CLRPERF_ANALYSE_EVENT_TALLY_H
#define CLRPERF_ANALYSE_EVENT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/event_stacks.h"
#include "base/id_map.h"
#include "base/intern.h"

struct event_weight {
    double weight;   /* bytes, nanoseconds, ... */
    double variance; /* of `weight`, where it is an estimate */
    double objects;  /* how many things it stands for, where that is not 1 */
};

struct event_sum {
    uint64_t count; /* events */
    double weight, variance, objects;
    double most; /* the largest weight of one event */
    uint64_t first_ns, last_ns;
};

struct tally_row {
    uint32_t text, detail; /* of event_tally.texts */
    uint32_t node;         /* of the stacks */
    uint32_t process;      /* of the trace */
    struct event_sum sum;
};

struct event_tally {
    const struct event_stacks *stacks; /* borrowed */
    struct intern texts;
    struct tally_row *rows; /* [0] is unused */
    size_t row_count, row_capacity;
    struct id_map ids;
    struct event_sum total;
};

enum tally_by { TALLY_BY_TEXT, TALLY_BY_STACK, TALLY_BY_FUNCTION, TALLY_BY_PROCESS, TALLY_BYS };

/* Rows that have something in common. */
struct tally_group {
    struct event_sum sum;
    size_t first, count; /* of event_groups.order */
};

struct event_groups {
    const struct event_tally *tally; /* borrowed */
    enum tally_by by;
    struct tally_group *rows; /* the heaviest first; then those with more events, then by name */
    size_t count;
    uint32_t *order; /* rows of the tally, those of a group together, the heaviest first */
};

void event_tally_init(struct event_tally *tally, const struct event_stacks *stacks);
void event_tally_done(struct event_tally *tally);
/* Counts an event; texts are UTF-8 of strangers. False when there is no room for another text. */
bool event_tally_add(struct event_tally *tally, struct span text, struct span detail, uint32_t node,
                     uint32_t process, uint64_t time_ns, const struct event_weight *weight);

void event_groups_init(struct event_groups *groups, const struct event_tally *tally, enum tally_by by);
void event_groups_done(struct event_groups *groups);

/* A group's row, the heaviest one is 0. */
static inline const struct tally_row *event_group_row(const struct event_groups *groups,
                                                      const struct tally_group *group, size_t i)
{
    return &groups->tally->rows[groups->order[group->first + i]];
}

#endif
