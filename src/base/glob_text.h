/*
 * glob_text: what users choose things by: a glob on a name, or a number.
 */
#ifndef CLRPERF_BASE_GLOB_TEXT_H
#define CLRPERF_BASE_GLOB_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* As a shell compares, cases ignored. */
bool glob_matches(const char *glob, const char *name);
/* Either does: the number as it is written, or the name. */
bool glob_matches_number(const char *glob, uint64_t number, const char *name);

#endif
