/*
 * code_survey: all pieces of jitted code that a runtime has at one time.
 */
#ifndef CLRPERF_CLR_CODE_SURVEY_H
#define CLRPERF_CLR_CODE_SURVEY_H

#include "clr/code_methods.h"

struct code_survey {
    struct memory_pages *pages; /* borrowed, as the next */
    const struct runtime_layout *layout;
    struct code_ranges ranges;
    struct code_heap *heaps; /* by address */
    size_t heap_count, heap_capacity;
    bool cut; /* something was left out at one of our bounds */
};

/* The regions of code, and of the heaps what starts where. `root` as in code_ranges_read(). */
void code_survey_read(struct code_survey *survey, struct memory_pages *pages,
                      const struct runtime_layout *layout, uint64_t root);
void code_survey_done(struct code_survey *survey);

/* Which pieces are asked for; all of them with a zeroed one. */
struct code_choice {
    bool collectible;      /* those only that may be freed */
    const uint64_t *addrs; /* those only that hold one of these, ascending; NULL: any */
    size_t addr_count;
    bool no_tiers;
    size_t at_most; /* about so many of them, in short rows that are evenly spread; 0: all */
};
struct code_list {
    struct surveyed_code *codes; /* by address; the caller frees them */
    size_t count;
    size_t broken;         /* pieces whose header makes no sense: they are only counted */
    uint32_t shared_count; /* methods of several pieces */
};
struct code_list code_survey_list(struct code_survey *survey, const struct code_choice *choice);
/* The piece of jitted code that holds `addr`, in `range`. */
bool code_survey_find(struct code_survey *survey, const struct code_range *range, uint64_t addr,
                      struct surveyed_code *out);
/* Reads anew what starts where in one range of jitted code. False when it makes no sense any more. */
bool code_survey_renew_heap(struct code_survey *survey, const struct code_range *range);
/* Reads ahead what names the dynamic methods in the list. */
void code_survey_read_dynamic(struct code_survey *survey, const struct surveyed_code *list, size_t count);
/*
 * Code that can be freed, and its records used again, may be so at any time. When all has been read that is
 * said of the list's pieces, their headers and records are read once more: those that differ lose their
 * record (described is false).
 */
void code_survey_prove(struct code_survey *survey, struct surveyed_code *list, size_t count);

#endif
