/*
 * question_gc: every collection, as a table, JSON and CSV.
 */
#ifndef CLRPERF_CLI_QUESTION_GC_H
#define CLRPERF_CLI_QUESTION_GC_H

#include "analyse/event_tally.h"
#include "analyse/finalized_types.h"
#include "analyse/gc_stats.h"
#include "cli/question_put.h"

/* What is asked, and the answer. */
struct gc_answer {
    struct question_scope scope;
    struct gc_stats stats;
    struct event_stacks stacks;  /* of who triggered */
    struct event_stacks callers; /* the same without GC.Collect */
    uint64_t cpu_ns, gc_cpu_ns;  /* where CPU samples are in the capture, too: of all, of collecting */
    struct event_tally triggers; /* who: texts are reasons, details labels, weights ns of pause */
    struct event_groups by_trigger;
    struct finalized_types finalized;
    const struct gc_record **rows; /* those that are shown, by process and time */
    size_t row_count;
};

extern const char *const gc_kind_names[]; /* by enum gc_kind */

/* How long a process could have told of collections, in ns. */
uint64_t gc_answer_told_ns(const struct gc_answer *a, uint32_t process);

/* For each reason of a group of by_trigger, the heaviest first: how many it has. Returns how many reasons. */
typedef void gc_reason_fn(void *user, const char *reason, uint64_t count);
size_t gc_answer_reasons(const struct gc_answer *a, const struct tally_group *group, gc_reason_fn *emit,
                         void *user);

/* The lines that say what a process's collections came to; `named`: after its name. */
void question_gc_head(const struct gc_answer *a, const struct gc_process_stats *p, bool named,
                      struct buffer *out);
bool question_gc_json(struct gc_answer *a, struct error *err);
bool question_gc_csv(struct gc_answer *a, struct error *err);

#endif
