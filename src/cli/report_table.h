/*
 * report_table: a report's answers as text for people.
 */
#ifndef CLRPERF_CLI_REPORT_TABLE_H
#define CLRPERF_CLI_REPORT_TABLE_H

#include "analyse/call_neighbours.h"
#include "analyse/hot.h"
#include "base/buffer.h"
#include "cli/capture.h"

enum { REPORT_BY_NAMES = HOT_BY_PROCESS + 1 };

/* "function", "module", ... by enum hot_by */
extern const char *const report_by_names[REPORT_BY_NAMES];

/* What the capture is and how far it can be believed. */
void report_head(const struct capture *c, const struct profile *p, size_t width, struct buffer *out);
/* `top` 0: all rows; `width` 0: as wide as it gets. */
void report_hot(const struct profile *p, const struct hot_table *table, enum hot_by by, size_t top,
                size_t width, struct buffer *out);
/* Of the functions that `asked` is the name of, or a part of it. */
void report_neighbours(const struct profile *p, const struct call_neighbours *n, const char *asked,
                       bool callers, size_t top, size_t width, struct buffer *out);
/* The call tree from the root down, branches above half a percent. */
void report_tree(const struct profile *p, size_t width, struct buffer *out);

#endif
