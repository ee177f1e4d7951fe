/*
 * csv_text: rows of comma-separated values, as RFC 4180 has them, with a line feed at each end.
 */
#ifndef CLRPERF_CLI_CSV_TEXT_H
#define CLRPERF_CLI_CSV_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct csv_text {
    struct buffer *out; /* borrowed */
    bool in_row;
};

void csv_init(struct csv_text *csv, struct buffer *out);
/* The first row: names, "a,b,c". */
void csv_titles(struct csv_text *csv, const char *titles);
/* The row's next value. NULL is empty. */
void csv_string(struct csv_text *csv, const char *text);
void csv_u64(struct csv_text *csv, uint64_t value);
void csv_double(struct csv_text *csv, double value);
/* Empty when not known. */
void csv_known_u64(struct csv_text *csv, bool known, uint64_t value);
void csv_known_double(struct csv_text *csv, bool known, double value);
void csv_end_row(struct csv_text *csv);

#endif
