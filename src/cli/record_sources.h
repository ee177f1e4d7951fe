/*
 * record_sources: what a recording records, from `-e` and the options of event providers.
 */
#ifndef CLRPERF_CLI_RECORD_SOURCES_H
#define CLRPERF_CLI_RECORD_SOURCES_H

#include <stdbool.h>

#include "base/buffer.h"
#include "cli/event_options.h"

struct record_sources {
    bool cpu, context_switches;
    struct event_providers topics; /* of runtimes, by -e */
    struct event_request asked;    /* of runtimes, in so many words */
    bool has_topics, has_asked;
    uint32_t buffer_mb; /* of the target's memory, for topics; 0: usual */
    bool chosen;        /* what is asked is asked event by event, where the runtime can */
};

/* Whether `list` (-e, or NULL) names what only the kernel sees. */
bool record_sources_want_kernel(const char *list);
/*
 * `list`: -e, or NULL: the CPU, unless providers are asked for. `force`: also what does harm to others who
 * listen. `note` is told what is ignored or has consequences; may be NULL. Fails with ERROR_USAGE. End *out
 * with record_sources_done(), also after a failure.
 */
bool record_sources_read(const char *list, const struct event_options *options, bool force,
                         void (*note)(void *user, const char *text), void *user, struct record_sources *out,
                         struct error *err);
/*
 * The same for a file of a runtime's events, where all is asked in one request: topics too; nothing given
 * means what it means to dotnet-trace.
 */
bool record_sources_read_stream(const char *list, const struct event_options *options, bool force,
                                void (*note)(void *user, const char *text), void *user,
                                struct record_sources *out, struct error *err);
void record_sources_done(struct record_sources *s);
/* "CPU samples at 199 Hz, gc, jit" */
void record_sources_text(const struct record_sources *s, const char *list, uint64_t rate_hz,
                         struct buffer *out);

#endif
