/*
 * capture_file: where a recording goes.
 */
#ifndef CLRPERF_CLI_CAPTURE_FILE_H
#define CLRPERF_CLI_CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Creates `path` for writing, mode 0600, owned by the user behind sudo. Never through a link; never over
 * a file that is there, unless `force`, and then only over a regular file. The caller closes *out_fd.
 */
bool capture_file_create(const char *path, bool force, int *out_fd, struct error *err);
/* Whether that with `force` would overwrite a file: what it holds can be kept until it has to go. */
bool capture_file_will_replace(const char *path);
/*
 * For what is written into a created file at the end only: says in it meanwhile that it was not, for who
 * finds it when we were killed, and `where` the recording is then; and empties it again.
 */
void capture_file_promise(int fd, const char *where);
bool capture_file_begin(int fd, struct error *err);
/* A file without a name, for what is only needed until the run ends. */
bool capture_file_unnamed(int *out_fd, struct error *err);
/* "webapi_4711_20261121_101500.clrperf" */
void capture_file_name(const char *process, uint32_t pid, char *out, size_t out_size);

#endif
