/*
 * library_path: whether a file is a shared library, as far as its name says.
 */
#ifndef CLRPERF_CLR_LIBRARY_PATH_H
#define CLRPERF_CLR_LIBRARY_PATH_H

#include <stdbool.h>

/* "/usr/lib/libc.so", "libc.so.6"; not "/srv/my.software/acme.social", which may be a single-file program. */
bool library_path(const char *path);

#endif
