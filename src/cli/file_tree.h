/*
 * file_tree: files at the paths that another system's files have, below one directory of ours.
 */
#ifndef CLRPERF_CLI_FILE_TREE_H
#define CLRPERF_CLI_FILE_TREE_H

#include <stdbool.h>

#include "base/error.h"

/* A handle of the directory, made with mode 0755 when it is not there. The caller closes it. */
bool file_tree_open(const char *path, int *out_root_fd, struct error *err);
/*
 * A handle of the directory that `path`, absolute, has below the root, with all directories to it, for the
 * caller to close; *out_name is the last part of `path`. ERROR_INPUT for a path that climbs (".."); a link on
 * the way is refused.
 */
bool file_tree_place(int root_fd, const char *path, int *out_directory_fd, const char **out_name,
                     struct error *err);

#endif
