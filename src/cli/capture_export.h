/*
 * capture_export: a capture, or a file of another tool, as an export format shows it.
 */
#ifndef CLRPERF_CLI_CAPTURE_EXPORT_H
#define CLRPERF_CLI_CAPTURE_EXPORT_H

#include "cli/capture.h"
#include "cli/profile_options.h"
#include "render/export_format.h"

/* Opens `path` with what the format shows of it; `choice` may name the event whose samples it will be. */
bool capture_export_read(const char *path, const struct export_format *format,
                         const struct profile_choice *choice, struct capture *out, struct error *err);
/*
 * What is to be shown of it, before a file is made: a choice may fit nothing. The caller frees *out, which is
 * NULL where the format holds everything.
 */
bool capture_export_build(const struct capture *c, const struct export_format *format,
                          const struct profile_choice *choice, struct profile **out, struct error *err);
/* Writes what was built to `fd`, which stays the caller's. */
bool capture_export_put(const struct capture *c, const struct export_format *format, const struct profile *p,
                        const struct export_options *shape, int fd, struct error *err);
/* Both. */
bool capture_export_write(const struct capture *c, const struct export_format *format,
                          const struct profile_choice *choice, const struct export_options *shape, int fd,
                          struct error *err);

/* After a recording: says so when there is nothing to be shown in `made`. */
void capture_export_warn_empty(const struct capture *c, const struct export_format *format, const char *made);

#endif
