/*
 * hot: where the weight of a profile went, one row a function, module, type, thread or process; a row for
 * each line of a function when the profile's frames are lines.
 */
#ifndef CLRPERF_ANALYSE_HOT_H
#define CLRPERF_ANALYSE_HOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/profile.h"

enum hot_by { HOT_BY_FUNCTION, HOT_BY_MODULE, HOT_BY_TYPE, HOT_BY_THREAD, HOT_BY_PROCESS };

enum { HOT_WHEN_BUCKETS = 32 };

struct hot_row {
    const char *name, *module; /* owned by the table or its profile */
    const char *file;          /* NULL unknown */
    uint32_t line;             /* as in profile_frame */
    bool line_of_method, inlined;
    uint8_t kind, tier;
    uint64_t self, total;            /* weight: as the leaf / anywhere in the stack, a sample once */
    uint64_t samples;                /* with it as the leaf */
    uint64_t when[HOT_WHEN_BUCKETS]; /* total, over the profile's duration */
};

struct hot_table {
    struct hot_row *rows;
    size_t count; /* all rows; the heaviest first, ties by name, module, line */
    struct arena arena;
};

/* `shown`: how many rows need their `when`; 0: all. In a profile of the tree only none has `when` or
 * `samples`. `inclusive` sorts by total, else by self. */
void hot_table_build(const struct profile *p, enum hot_by by, bool inclusive, size_t shown,
                     struct hot_table *out);
/*
 * The immediate callers (or callees) of the frames that `function` names, each with the weight that flows
 * through: their totals add up to the function's own total. Of a recursion the outermost call counts.
 * The function itself is row 0. False when no frame has that name (exact, else as a part of it).
 */
bool hot_table_neighbours(const struct profile *p, const char *function, bool callers, struct hot_table *out);
void hot_table_done(struct hot_table *table);

/* PerfView's strip: a character for each bucket, by share of one CPU (32 characters and a NUL). */
void hot_when_text(const struct hot_row *row, uint64_t duration_ns, char out[HOT_WHEN_BUCKETS + 1]);

#endif
