/*
 * question: what `clrperf report FILE QUESTION` answers; one file per question, listed in question.c.
 */
#ifndef CLRPERF_CLI_QUESTION_H
#define CLRPERF_CLI_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/capture.h"
#include "cli/event_choice.h"
#include "cli/profile_options.h"

enum { REPORT_TOP_UNSAID = UINT32_MAX };

/* The options of `report`; each question takes some of them. */
struct report_values {
    struct profile_choice choice;
    struct event_choice events;
    const char *by, *callers, *callees, *strict;
    uint32_t top;
    bool inclusive, tree, lines, json, csv;
};

/* What --top and --by say; when they say nothing: `otherwise`. */
static inline uint32_t report_top(const struct report_values *v, uint32_t otherwise)
{
    return v->top == REPORT_TOP_UNSAID ? otherwise : v->top;
}

static inline const char *report_by_word(const struct report_values *v, const char *otherwise)
{
    return v->by ? v->by : otherwise;
}

struct question_call {
    const struct report_values *values;
    const struct capture *capture;  /* named when the question wants names */
    const struct import_part *part; /* how it was read of a question that is answered in parts, or NULL */
    int exit_code;                  /* set when it is not EXIT_OK though nothing failed */
};

/* Of struct question.takes: what questions about events take; which samples are looked at. */
#define QUESTION_TAKES_EVENTS  "top time process raw-names json csv"
#define QUESTION_TAKES_SAMPLES "time process thread include exclude group raw-names"

struct question {
    const char *name;
    const char *summary; /* a line for --help */
    bool names_code;     /* shows functions: what has no name yet is looked up first */
    bool shows_sums;     /* of samples; when each of them was matters little */
    const char *takes;   /* names of the options that mean something to it, with spaces between */
    bool in_parts; /* can be answered in parts, when a file has more events than fit (cli/event_parts.h) */
    /* of what is made of events, not of samples: of which ones, and what `record -e` takes to have them */
    const char *provider, *record;
    uint64_t keywords, other_keywords; /* these, or the others at their level; 0: there are none */
    uint8_t level, other_level;
    import_wants_fn
        *wants; /* which events of a file of events it looks at, given the report_values; NULL: all */
    /* Judges the options before the capture is read, which can take a while; or NULL. */
    bool (*check)(const struct report_values *v, struct error *err);
    /* Adds to what was read, or NULL. False when it takes each sample by itself, and there are sums. */
    bool (*prepare)(struct trace *t);
    /* Prints the answer. */
    bool (*run)(struct question_call *call, struct error *err);
};

/* All questions, in the order of help; ends with NULL. */
extern const struct question *const questions[];
/* By name; "" is what a report answers that is asked nothing. NULL when there is none. */
const struct question *question_find(const char *name);
/* Whether a runtime was asked for the events it is made of, be there any or not. */
bool question_is_told(const struct question *question, const struct trace *t);
/* Their names, ", " between: those of which a recording holds the events. */
void question_answered(const struct trace *t, struct buffer *out);
/* Fails with ERROR_USAGE and the names of all of them. */
bool question_unknown(const char *name, struct error *err);

#endif
