/*
 * message: what the user reads on stderr.
 *
 * Text from outside may be part of any message: control characters are escaped when it is printed.
 */
#ifndef CLRPERF_CLI_MESSAGE_H
#define CLRPERF_CLI_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/verb.h"

/* `error: WHAT` and, when there is a hint, `  try: HINT`. */
void message_error(const struct error *err);
/* `warning: ...`: the run goes on, but the result lacks something. */
void message_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line of progress. */
void message_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
enum exit_code message_exit_code(enum error_kind kind);

/* May colours go to this descriptor? A terminal that is not dumb, and NO_COLOR is not set. */
bool message_colour(int fd);

#endif
