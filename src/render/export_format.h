/*
 * export_format: the formats a profile can be written in, found by file name or by name.
 */
#ifndef CLRPERF_RENDER_EXPORT_FORMAT_H
#define CLRPERF_RENDER_EXPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "analyse/profile.h"
#include "render/export_options.h"
#include "render/output.h"

struct export_format {
    const char *name;      /* as --format has it; several rows of one name are its spellings */
    const char *extension; /* with its dot */
    const char *summary;
    bool gzip;      /* the file is this format compressed */
    bool tree_only; /* it shows sums and needs no sample columns */
    bool timeline;  /* it shows what runtimes told of besides samples */
    bool (*write)(const struct profile *p, const struct export_options *options, struct output *out,
                  struct error *err);
    /* Instead of `write`: it holds everything that was recorded, and is written from the trace itself. */
    bool (*write_trace)(const struct trace *t, struct output *out, struct error *err);
};

/* All rows; the first of a name has its usual extension. */
const struct export_format *export_formats(size_t *count);
/* The one whose extension is the longest that `path` ends in, in any case; NULL when none fits. */
const struct export_format *export_format_for_path(const char *path);
/* In any case; an extension without its dot names its own row. NULL when there is none of that name. */
const struct export_format *export_format_by_name(const char *name);
/* Whether a file of it is more than text. */
bool export_format_is_binary(const struct export_format *format);

/* Writes the whole file, with the compression its format has. The caller closes `out`. */
bool export_profile(const struct export_format *format, const struct profile *p,
                    const struct export_options *options, struct output *out, struct error *err);
/* The same to a descriptor, which stays the caller's. */
bool export_profile_to_fd(const struct export_format *format, const struct profile *p,
                          const struct export_options *options, int fd, struct error *err);

/* The same of a format that is written from the trace. */
bool export_trace_to_fd(const struct export_format *format, const struct trace *t, int fd, struct error *err);

#endif
