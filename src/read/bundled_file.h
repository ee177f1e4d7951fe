/*
 * bundled_file: opens files that lie inside of a single-file .NET program.
 *
 * The path of such a file leads through the program: /srv/shop/System.Text.Json.dll, where /srv/shop is the
 * program. No file system has such a path, so it means nothing else.
 */
#ifndef CLRPERF_READ_BUNDLED_FILE_H
#define CLRPERF_READ_BUNDLED_FILE_H

/* Opens a path as someone sees it: a regular file that the caller closes, or -1. */
typedef int path_open_fn(void *user, const char *path);

/* A copy of the file, unpacked: the caller closes it. -1 when there is no such program, or not that in it. */
int bundled_file_open(const char *path, path_open_fn *open, void *user);

#endif
