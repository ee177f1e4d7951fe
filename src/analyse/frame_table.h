/*
 * frame_table: the frames of a profile in the making.
 *
 * A frame is a function as it is shown: one for each name in a module or, when asked for, for each source
 * line of it. Adds to a profile's frames and keeps their texts in its arena; which patterns of a filter match
 * a frame is found out when it is added.
 */
#ifndef CLRPERF_ANALYSE_FRAME_TABLE_H
#define CLRPERF_ANALYSE_FRAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/profile.h"
#include "analyse/stack_filter.h"
#include "base/buffer.h"
#include "base/id_map.h"

struct frame_table {
    const struct trace *trace;
    const struct stack_filter *filter;
    struct profile *profile;
    bool lines;     /* a frame is a line of a function */
    bool raw_names; /* the runtime's spelling */
    bool is_full;   /* there was no room for a text: some are "" */
    struct id_map frames;
    size_t capacity;
    uint32_t *of_location; /* 0: not looked at yet */
    uint32_t *of_function;
    uint32_t *of_inlined;               /* by row of trace.inlined */
    const char **file_of_string;        /* by string: the text to show, when it is a source file's */
    uint32_t of_work[WORK_CLASSES + 1]; /* folded kinds of work; the last: between managed code */
    uint64_t *matched;                  /* by frame: the filter's patterns that match it */
    size_t matched_capacity;
    struct buffer text, module; /* a name in the making, and its module */
};

/* All borrowed. The profile's arena is there already. */
void frame_table_init(struct frame_table *table, const struct trace *t, const struct profile_options *options,
                      const struct stack_filter *filter, struct profile *p);
void frame_table_done(struct frame_table *table);

/* The frame of a row of the trace's locations. */
uint32_t frame_table_location(struct frame_table *table, uint32_t location);
/* With lines, the frame of a row of the trace's inlined functions, at a row of its locations. */
uint32_t frame_table_inlined(struct frame_table *table, uint32_t inlined, uint32_t location);
/* The frame that stands for folded ones: of a kind of work, or, for WORK_CLASSES, between managed code. */
uint32_t frame_table_work(struct frame_table *table, unsigned work);
/* A frame of our own, such as "[truncated]". */
uint32_t frame_table_own(struct frame_table *table, const char *name);

/* Text for people and for every format, kept: control characters and broken UTF-8 are replaced. */
const char *frame_table_text(struct frame_table *table, struct span raw);
/* The same of a string of the trace. */
const char *frame_table_string(struct frame_table *table, uint32_t id);

#endif
