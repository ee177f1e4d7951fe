/*
 * capture: the file that report and export look at, whatever made it.
 */
#ifndef CLRPERF_CLI_CAPTURE_H
#define CLRPERF_CLI_CAPTURE_H

#include "analyse/profile.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/source.h"
#include "import/import.h"
#include "trace/builder.h"

struct capture {
    struct trace_builder b; /* the trace is in it */
    const char *path;       /* borrowed */
    bool is_ours;           /* a capture of clrperf */
};

/*
 * Opens a capture, or a file of another tool: perf.data, `perf script` text, folded stacks, nettrace; "-" is
 * standard input. Of a file of events it takes what samples are reported with. Names what was not named when
 * it was made. The caller ends with capture_done().
 */
bool capture_open(const char *path, struct capture *out, struct error *err);
/* The two halves of it, for what may need no names, or not all of a file of another tool: `how` says what. */
bool capture_read(const char *path, const struct import_options *how, struct capture *out, struct error *err);
/* The same for what shows samples: where nobody sampled, a kind of event that has stacks is taken instead,
 * that of the name `event` or, when that is NULL, the first. */
bool capture_read_stacks(const char *path, const struct import_options *how, const char *event,
                         struct capture *out, struct error *err);
/* False of standard input and pipes, whose bytes come once. */
bool capture_can_read_again(const char *path);
/* A capture of ours that was just made, under this name. */
bool capture_read_made(const struct source *file, const char *path, struct capture *out, struct error *err);
void capture_name(struct capture *c);
void capture_done(struct capture *c);
/* Says on stderr what the user should know before believing the result: damage, a missing end. */
void capture_warn(const struct capture *c);

/* The members of "lost_by". */
void capture_json_losses(struct json_writer *j, const struct trace *t);
/* The member "capture" of a report's JSON. */
void capture_json_head(struct json_writer *j, const struct capture *c, const struct profile *p);
/* The same without a profile: 0 is not known, and no sampling. */
void capture_json_facts(struct json_writer *j, const struct capture *c, uint64_t realtime_ns,
                        uint64_t duration_ns, double rate_hz);

#endif
