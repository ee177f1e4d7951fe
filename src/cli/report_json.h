/*
 * report_json: a report's answers as JSON, in the schemas of the contract.
 */
#ifndef CLRPERF_CLI_REPORT_JSON_H
#define CLRPERF_CLI_REPORT_JSON_H

#include "analyse/call_neighbours.h"
#include "analyse/hot.h"
#include "cli/capture.h"

/* "clrperf.report.cpu/1"; `top` 0: all rows. */
bool report_json_hot(const struct capture *c, const struct profile *p, const struct hot_table *table,
                     enum hot_by by, size_t top, struct error *err);
/* The same, with "focus": what was `asked` for and found. */
bool report_json_neighbours(const struct capture *c, const struct profile *p, const struct call_neighbours *n,
                            const char *asked, bool callers, size_t top, struct error *err);
/* "clrperf.tree/1" */
bool report_json_tree(const struct capture *c, const struct profile *p, struct error *err);
/* "clrperf.report.threads/1": the heaviest `top`; 0: all, as they were first seen. */
bool report_json_threads(const struct capture *c, const struct profile *p, size_t top, struct error *err);

#endif
