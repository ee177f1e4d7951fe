/*
 * span_table: what began and ended, with names, grouped by them: how long, how often, which were the slowest.
 *
 * A span is one request, one task, one activity of a program. Those that have a begin only are counted, not
 * kept.
 */
#ifndef CLRPERF_ANALYSE_SPAN_TABLE_H
#define CLRPERF_ANALYSE_SPAN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "base/intern.h"
#include "trace/trace.h"

enum { SPAN_STATUS_NONE = -1 };

struct span_row {
    uint64_t start_ns, stop_ns;
    uint64_t gc_ns;       /* in it threads stood still for collections, as far as was told */
    uint32_t process;     /* of the trace */
    uint32_t thread;      /* that began it; 0 not known */
    uint32_t stack;       /* of its begin */
    uint32_t kind, name;  /* of span_table.texts: "server", "GET /orders/7" */
    uint32_t group;       /* the name of those it is counted with: "GET /orders/{id}"; 0: those of its own */
    uint8_t activity[16]; /* that it is, or zero */
    bool on_one_thread; /* it is known by its thread, which does nothing else meanwhile, as far as is told */
    int32_t status;     /* that it ended with, or SPAN_STATUS_NONE */
    bool failed;
    uint64_t due_ns; /* when somebody else says that it is over, or 0: tells those of one key apart */
};

/* One that has begun. `key` and `scope` name it while it goes on, `nth` those that share them: 0 and up. */
struct open_span {
    uint8_t key[16];
    uint32_t scope, nth;
    struct span_row row;
    bool is_over;
};

struct span_table {
    struct intern texts;
    struct span_row *rows; /* in the order they ended */
    size_t count, capacity;
    struct open_span *open; /* [0] is unused */
    size_t open_count, open_capacity, over_count;
    struct id_map open_ids;
    uint64_t unfinished; /* began, and did not end; known when it is sealed */
    uint64_t unbegun;    /* ended, and had not begun */
    bool is_full;        /* there was no room for a text */
};

/* Spans of one kind and group. */
struct span_group {
    uint32_t kind, name;
    uint64_t count, failed, total_ns, gc_ns;
    size_t first; /* of span_groups.order */
};

struct span_groups {
    const struct span_table *table; /* borrowed */
    struct span_group *rows;        /* the one with most time first */
    size_t count;
    uint32_t *order; /* rows of the table, those of a group together, the shortest first */
};

void span_table_init(struct span_table *table);
void span_table_done(struct span_table *table);
/* It begins. One of the same key and scope that goes on is given up. */
void span_table_begin(struct span_table *table, const uint8_t key[16], uint32_t scope,
                      const struct span_row *row);
/*
 * It begins beside others of the same key and scope: the runtime gives all activities that begin in one after
 * its tenth the same id, where the tenth's takes half a byte.
 */
void span_table_begin_beside(struct span_table *table, const uint8_t key[16], uint32_t scope,
                             const struct span_row *row);
/* The one that goes on with this key and scope, or NULL; it may be changed. Of several the first. */
struct span_row *span_table_find(struct span_table *table, const uint8_t key[16], uint32_t scope);
/* Of several that which is due next after a time. */
struct span_row *span_table_find_next(struct span_table *table, const uint8_t key[16], uint32_t scope,
                                      uint64_t time_ns);
/* Of several that which span_table_end() would end. */
struct span_row *span_table_find_due(struct span_table *table, const uint8_t key[16], uint32_t scope,
                                     uint64_t time_ns);
/*
 * It ends. Of several that which was due last before that; of those that nobody else tells of that which
 * began first. False when none goes on.
 */
bool span_table_end(struct span_table *table, const uint8_t key[16], uint32_t scope, uint64_t stop_ns);
/* No more comes: counts what is unfinished, and how much of each span was pauses of collections. */
void span_table_seal(struct span_table *table, const struct trace *t);

void span_groups_init(struct span_groups *groups, const struct span_table *table);
void span_groups_done(struct span_groups *groups);
/* The span of a group that `share` of them do not last longer than: 0.5 is the median, 1 the slowest. */
const struct span_row *span_group_at(const struct span_groups *groups, const struct span_group *group,
                                     double share);

static inline uint64_t span_ns(const struct span_row *row)
{
    return row->stop_ns - row->start_ns;
}

#endif
