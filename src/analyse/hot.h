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
void hot_table_done(struct hot_table *table);

/* By total, the heaviest first; ties by name, module, line. */
void hot_table_sort(struct hot_table *table);
/* A frame's row without any weight; its texts are the profile's. */
struct hot_row hot_row_like(const struct profile_frame *frame);
/* Adds a sample's weight to the buckets of the time that it stands for. */
void hot_when_add(const struct profile *p, size_t sample, uint64_t *when);

/* The weight of a bucket that is full: one CPU's time; of what is counted, as context switches, the busiest.
 */
double hot_when_full(const struct profile *p);
/* PerfView's strip: a character for each bucket, by its share of a full one (32 characters and a NUL). */
void hot_when_text(const struct hot_row *row, double full, char out[HOT_WHEN_BUCKETS + 1]);

#endif
