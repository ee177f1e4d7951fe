/*
 * event_options: how the user says which events of .NET runtimes are meant; a group of options, with the
 * spellings of dotnet-trace.
 */
#ifndef CLRPERF_CLI_EVENT_OPTIONS_H
#define CLRPERF_CLI_EVENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/option.h"
#include "clr/event_providers.h"

struct event_options {
    struct option_list providers; /* each a list with commas */
    const char *profile, *clr_events, *clr_level;
    const char *buffer_mb; /* text, or NULL */
    const char *buffering; /* the same */
    uint8_t rundown;       /* enum option_switch */
};

extern const struct option_spec event_option_specs[];

/* Whether any provider is asked for. */
bool event_options_given(const struct event_options *options);

/* --buffersize; *out is 0 when it was not given. Fails also where --buffering-mode wants another one than
 * Drop. */
bool event_options_buffer(const struct event_options *options, uint32_t *out_mb, struct error *err);
/*
 * What they ask for; nothing given means what dotnet-trace does then. `note` is told what was ignored; may be
 * NULL. Fails with ERROR_USAGE. The caller ends *out with event_request_done(), also after a failure.
 */
bool event_options_read(const struct event_options *options, void (*note)(void *user, const char *text),
                        void *user, struct event_request *out, struct error *err);

#endif
