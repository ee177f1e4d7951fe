/*
 * groups_print: prints an answer made of groups (cli/question_groups.h) as JSON, as CSV or as a table.
 *
 * A question says what is its own of each; what all have in common is here.
 */
#ifndef CLRPERF_CLI_GROUPS_PRINT_H
#define CLRPERF_CLI_GROUPS_PRINT_H

#include "cli/question_groups.h"

struct groups_answer {
    const struct question_scope *scope;
    const struct event_groups *groups;
    const void *stats; /* the question's own */
};

struct groups_form {
    const char *schema; /* "clrperf.report.locks/1" */
    const char *text;   /* what its texts are: "lock" */
    /* Members of "totals", of a row behind its key, and of one of its places, which are listed as `places`.
     */
    void (*json_totals)(struct json_writer *j, const struct groups_answer *a);
    void (*json_row)(struct json_writer *j, const struct groups_answer *a, const struct tally_group *group);
    const char *places;
    void (*json_place)(struct json_writer *j, const struct groups_answer *a, const struct tally_row *row);
    /* Cells behind pid and text, before the stack: of each place, or of each group only. */
    const char *csv_titles;
    bool csv_groups;
    void (*csv_cells)(struct csv_text *csv, const struct groups_answer *a, const struct tally_group *group,
                      const struct tally_row *row);
    /* The lines above the table, and a row of it; `cell` is for texts. */
    void (*head)(const struct groups_answer *a, struct buffer *out);
    void (*add_row)(const struct groups_answer *a, const struct tally_group *group, struct text_table *table,
                    struct buffer *cell);
};

/* As the options of the scope's call say. */
bool groups_print(const struct groups_form *form, const struct groups_answer *a,
                  const struct text_column *columns, size_t column_count, struct error *err);

#endif
