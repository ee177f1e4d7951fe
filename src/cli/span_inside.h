/*
 * span_inside: what went on inside spans (analyse/span_account.h), as cells of tables, JSON and CSV.
 */
#ifndef CLRPERF_CLI_SPAN_INSIDE_H
#define CLRPERF_CLI_SPAN_INSIDE_H

#include "analyse/span_account.h"
#include "base/json_writer.h"
#include "cli/csv_text.h"
#include "cli/text_table.h"

enum { SPAN_INSIDE_COLUMNS = 12 };

/* Whether anything is known beyond when spans began and ended. */
bool span_inside_known(const struct span_accounts *accounts);
/* Columns for what the capture knows of; their number, at most SPAN_INSIDE_COLUMNS. */
size_t span_inside_columns(const struct span_accounts *accounts, struct text_column *out);
/* The cells of those columns, divided by `count` spans. */
void span_inside_cells(const struct span_accounts *accounts, const struct span_account *row, uint64_t count,
                       struct text_table *table);
/* The member "inside". */
void span_inside_json(const struct span_accounts *accounts, const struct span_account *row,
                      struct json_writer *j);
/* Titles of columns, a comma in front of each; and a row's values. */
extern const char span_inside_titles[];
void span_inside_csv(const struct span_accounts *accounts, const struct span_account *row,
                     struct csv_text *csv);

#endif
