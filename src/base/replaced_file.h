/*
 * replaced_file: a file that appears under its name whole or not at all.
 *
 * It is written beside its place without a name (under another one where the file system has no such files),
 * then named and renamed, so that who reads the name sees the old file or the new one, and a writer that is
 * killed leaves nothing. Nothing is written through a link: what was under the name, a link too, is replaced,
 * not followed. The directory may belong to a stranger.
 */
#ifndef CLRPERF_BASE_REPLACED_FILE_H
#define CLRPERF_BASE_REPLACED_FILE_H

#include <stdbool.h>

#include "base/error.h"

struct replaced_file {
    int fd;           /* for writing, and for reading what was written; owned */
    int directory_fd; /* borrowed */
    char name[256];
    char temporary[300]; /* "" while it has none */
};

/*
 * Creates an empty file of mode 0600, ours, in the directory. ERROR_USAGE when `name` is none ("", "a/b");
 * ERROR_PERMISSION and ERROR_SYSTEM as the kernel says. The caller ends with _commit() or _abandon().
 */
bool replaced_file_open(int directory_fd, const char *name, struct replaced_file *out, struct error *err);
/*
 * Puts the file in its place. ERROR_PERMISSION where a file of somebody else is there and stays (a sticky
 * directory). On failure the old file is as it was, and nothing else is left.
 */
bool replaced_file_commit(struct replaced_file *file, struct error *err);
/* Leaves no trace of it. */
void replaced_file_abandon(struct replaced_file *file);

#endif
