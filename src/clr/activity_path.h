/*
 * activity_path: the path of numbers that an event source's activity ids are.
 *
 * What an event source begins gets an id that says what it was begun in: 1/3/2 is the second activity in
 * 1/3. Numbers are packed into the first 12 bytes of the id: 1 to 10 as four bits, others as a code of four
 * bits and 1 to 4 bytes; the last four bytes are a checksum with the process's number. Specified in
 * dotnet/runtime, src/libraries/System.Private.CoreLib/src/System/Diagnostics/Tracing/ActivityTracker.cs.
 */
#ifndef CLRPERF_CLR_ACTIVITY_PATH_H
#define CLRPERF_CLR_ACTIVITY_PATH_H

#include <stdbool.h>
#include <stdint.h>

enum { ACTIVITY_ID_BYTES = 16, ACTIVITY_PATH_BYTES = 12 };

/* What is left of one when its last numbers are taken away; all zero: none. */
struct activity_path {
    uint8_t bytes[ACTIVITY_PATH_BYTES];
};

/* False for an id that is none of those: a program chose it, or there is none. */
bool activity_path_read(const uint8_t id[ACTIVITY_ID_BYTES], struct activity_path *out);
bool activity_path_is_none(const struct activity_path *path);
/* What it was begun in: the path without its last number. */
struct activity_path activity_path_parent(const struct activity_path *path);

#endif
