/*
 * temp_folder: a new folder for one test, in $TMPDIR or /tmp. The test removes it.
 */
#ifndef CLRPERF_TESTS_TEMP_FOLDER_H
#define CLRPERF_TESTS_TEMP_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* False when it cannot be made, or its name has no room. */
static inline bool temp_folder_make(char *path, size_t size)
{
    const char *parent = getenv("TMPDIR");
    int length = snprintf(path, size, "%s/clrperf-test-XXXXXX", parent ? parent : "/tmp");
    return length > 0 && (size_t)length < size && mkdtemp(path);
}

#endif
