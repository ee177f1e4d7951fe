/*
 * question_spans: answers made of what began and ended (analyse/span_table.h): requests, tasks.
 */
#ifndef CLRPERF_CLI_QUESTION_SPANS_H
#define CLRPERF_CLI_QUESTION_SPANS_H

#include "analyse/span_account.h"
#include "analyse/span_table.h"
#include "cli/question_put.h"

struct spans_answer {
    struct question_scope scope;
    const struct span_table *table;
    const struct span_accounts *accounts; /* or NULL: what went on inside is not looked at */
    const char *schema;
    const char *what; /* the line above the table: "requests" */
    const char *name; /* the column of names: "request" */
    uint64_t malformed;
    uint64_t by_thread; /* begins and ends that may be mixed up: no activity tells them apart */
    const char *apart;  /* what would, or why nothing does */
};

/* Prints the table, JSON or CSV as asked. */
bool question_spans_put(const struct spans_answer *a, struct error *err);

#endif
