/*
 * question_groups: answers made of events that were counted and grouped (analyse/event_tally.h).
 */
#ifndef CLRPERF_CLI_QUESTION_GROUPS_H
#define CLRPERF_CLI_QUESTION_GROUPS_H

#include "analyse/event_tally.h"
#include "base/own.h"
#include "cli/csv_text.h"
#include "cli/question_put.h"
#include "cli/text_table.h"

enum {
    GROUPS_ROWS_SHOWN = 30,
    GROUPS_PLACES = 10, /* stacks of a row in JSON; --top 0 gives all */
};

/* Judges --by: `text` is what the question calls its texts, "type" or "lock". */
bool question_groups_check(const struct report_values *v, const char *text, struct error *err);
/* What --by says; by text without it. */
enum tally_by question_groups_by(const struct report_values *v, const char *text);

/* How many groups are shown, in a table and else. */
size_t question_groups_rows(const struct report_values *v, const struct event_groups *groups);

/*
 * The members "by" and, in each row, what its group has in common: `text`, "function", "process" and "pid".
 * What differs within it is that of its heaviest row.
 */
void question_groups_json_by(struct json_writer *j, const struct event_groups *groups, const char *text);
void question_groups_json_key(struct json_writer *j, const struct question_scope *scope,
                              const struct event_groups *groups, const struct tally_group *group,
                              const char *text);
/* How many of the group's rows are listed as its places. */
size_t question_groups_places(const struct report_values *v, const struct tally_group *group);

/* The name of a group: its type, its leaf and callers, its process. Ends with a NUL. */
void question_groups_name(const struct question_scope *scope, const struct event_groups *groups,
                          const struct tally_group *group, struct buffer *out);
/* "12.3" of a hundred. */
void question_groups_add_share(struct text_table *table, double part, double whole);
/* The row's text, or NULL for an empty one. */
const char *question_groups_text(const struct event_groups *groups, const struct tally_row *row);
const char *question_groups_detail(const struct event_groups *groups, const struct tally_row *row);

/* The table's end: how many rows there are more. */
void question_groups_more(const struct event_groups *groups, size_t shown, struct buffer *out);

#endif
