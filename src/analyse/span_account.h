/*
 * span_account: what went on inside spans: what threads that worked for one did, and how long none did.
 *
 * Threads belong to a span while they are in its activity, or in one that was begun in it
 * (analyse/work_stretches.h). A span without an activity that its own thread ends is assumed to have had that
 * thread to itself.
 */
#ifndef CLRPERF_ANALYSE_SPAN_ACCOUNT_H
#define CLRPERF_ANALYSE_SPAN_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/activity_parents.h"
#include "analyse/span_table.h"
#include "analyse/thread_course.h"
#include "analyse/work_stretches.h"

/* How it is known which threads worked for a span. */
enum span_threads { SPAN_THREADS_UNKNOWN, SPAN_THREADS_ASSUMED, SPAN_THREADS_TOLD };

struct span_account {
    struct thread_times times; /* of all its threads: several at once make more than the span's time, but
                                * not of what is THREAD_UNKNOWN: none of its threads is known of then */
    uint64_t away_ns;          /* no thread worked for it */
    uint64_t unknown_ns;       /* whether one did is not known */
    uint64_t collections;      /* went on in it, at least partly */
    uint32_t stretches;        /* in which a thread worked for it */
    uint64_t known[SPAN_THREADS_TOLD + 1]; /* spans by enum span_threads: one here, more in a sum */
};

struct span_accounts {
    struct span_account *rows; /* by row of the table */
    size_t count;
    bool has_cpu, has_switches;                                       /* were sampled */
    bool has_locks, has_collections, has_exceptions, has_allocations; /* were told of, or would have been */
    struct span_account total;
    uint64_t left_out; /* spans of unknown threads: more at once than are looked into (span_lanes.h) */
    struct thread_course course;
    struct activity_parents parents;
    struct work_stretches work;
};

/* The events that it is made of, besides those of the spans. */
bool span_accounts_wants(const char *provider, uint32_t event_id);
/* `table` is sealed. */
void span_accounts_init(struct span_accounts *accounts, const struct span_table *table,
                        const struct trace *t);
void span_accounts_done(struct span_accounts *accounts);
/*
 * The same for each of `parts` equal parts of `count` of the table's spans, one span's after the other's; but
 * not the collections in them. `out` has room for all.
 */
void span_accounts_parts(const struct span_accounts *accounts, const struct span_row *const *spans,
                         size_t count, size_t parts, struct span_account *out);
void span_account_add(struct span_account *sum, const struct span_account *one);

#endif
