/*
 * standard_output: what goes to stdout, whole and checked.
 */
#ifndef CLRPERF_CLI_STANDARD_OUTPUT_H
#define CLRPERF_CLI_STANDARD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json_writer.h"

enum { OUTPUT_BYTES_MAX = 256 << 20 };

/* Writes the bytes to stdout. */
bool stdout_text(const struct buffer *text, struct error *err);
/* A JSON writer that streams to stdout by way of `buffer`; stdout_json_end() ends both. */
void stdout_json(struct json_writer *w, struct buffer *buffer);
bool stdout_json_end(struct json_writer *w, struct error *err);
/* The same of documents a line each. */
bool stdout_json_end_lines(struct json_writer *w, struct error *err);
/* The error of a write to stdout that failed. */
bool stdout_refused(int os_error, struct error *err);
/* Columns of the terminal that stdout is; 0 when it is none. */
size_t stdout_width(void);

#endif
