/*
 * orientation: what `clrperf` alone says: which .NET processes there are, and what to type next.
 */
#ifndef CLRPERF_CLI_ORIENTATION_H
#define CLRPERF_CLI_ORIENTATION_H

#include <stdbool.h>

#include "base/error.h"

bool orientation_print(const char *program, struct error *err);

#endif
