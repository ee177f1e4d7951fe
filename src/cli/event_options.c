#include "cli/event_options.h"

#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "clr/event_profiles.h"

enum { DEFAULT_BUFFER_MB = 256 };

const struct option_spec event_option_specs[] = {
    { .kind = OPTION_HEADING, .help = "events of .NET runtimes, as dotnet-trace has them" },
    { "profile", 0, OPTION_STRING, offsetof(struct event_options, profile),
      "dotnet-common, dotnet-sampled-thread-time, gc-verbose, gc-collect, database, cpu-sampling, none",
      "LIST", NULL },
    { "providers", 0, OPTION_STRING_LIST, offsetof(struct event_options, providers),
      "Name[:keywords[:level[:key=value;...]]],...: keywords in hex, level 0 to 5 or by name", "LIST", NULL },
    { "clrevents", 0, OPTION_STRING, offsetof(struct event_options, clr_events),
      "the runtime's own by name: gc+jit+exception", "NAMES", NULL },
    { "clreventlevel", 0, OPTION_STRING, offsetof(struct event_options, clr_level),
      "their level (informational)", "LEVEL", NULL },
    { "buffersize", 0, OPTION_STRING, offsetof(struct event_options, buffer_mb),
      "memory of the target's that events may wait in, in MB (256)", "MB", NULL },
    { "buffering-mode", 0, OPTION_STRING, offsetof(struct event_options, buffering),
      "what becomes of events where that is full: Drop, the only one", "MODE", NULL },
    { "rundown", 0, OPTION_SWITCH, offsetof(struct event_options, rundown),
      "have the runtime list its methods at the end, or not", "true|false", NULL },
    { 0 },
};

bool event_options_given(const struct event_options *options)
{
    return options->providers.count || (options->profile && *options->profile) ||
           (options->clr_events && *options->clr_events);
}

/* A runtime that blocks stands still when we do. */
static bool check_buffering(const char *mode, struct error *err)
{
    if (!mode || strcasecmp(mode, "drop") == 0 || strcmp(mode, "0") == 0)
        return true;
    if (strcasecmp(mode, "block") == 0 || strcmp(mode, "1") == 0) {
        error_set(
            err, ERROR_UNSUPPORTED,
            "--buffering-mode Block: a program would stand still whenever its events are not read at once");
        return error_hint(err,
                          "leave it out; --buffersize makes room for more events, and what is lost is told");
    }
    error_set(err, ERROR_USAGE, "'%s' is no value for --buffering-mode", mode);
    return error_hint(err, "Drop, or leave it out");
}

bool event_options_buffer(const struct event_options *options, uint32_t *out_mb, struct error *err)
{
    uint64_t mb = 0;
    if (!check_buffering(options->buffering, err))
        return false;
    if (options->buffer_mb &&
        (!units_parse_count(options->buffer_mb, &mb) || mb < 1 || mb > IPC_BUFFER_MB_MAX)) {
        error_set(err, ERROR_USAGE, "'%s' is no value for --buffersize", options->buffer_mb);
        return error_hint(err, "give a number of MB, 1 to %d", IPC_BUFFER_MB_MAX);
    }
    *out_mb = (uint32_t)mb;
    return true;
}

static bool read_buffer(const struct event_options *options, struct event_request *out, struct error *err)
{
    uint32_t mb;
    if (!event_options_buffer(options, &mb, err))
        return false;
    out->buffer_mb = mb ? mb : DEFAULT_BUFFER_MB;
    out->buffer_is_usual = !mb;
    return true;
}

/* Where a profile chooses, an older runtime is asked for none rather than for all. */
static void read_rundown(const struct event_options *options, uint64_t of_profiles, struct event_request *out)
{
    out->rundown_keywords = of_profiles ? of_profiles : IPC_RUNDOWN_DEFAULT;
    out->rundown_chosen_only = true;
    if (options->rundown == SWITCH_ON)
        out->rundown_keywords |= IPC_RUNDOWN_DEFAULT;
    else if (options->rundown == SWITCH_OFF)
        out->rundown_keywords = 0;
}

bool event_options_read(const struct event_options *options, void (*note)(void *user, const char *text),
                        void *user, struct event_request *out, struct error *err)
{
    *out = (struct event_request){ .stacks = true };
    uint64_t rundown = 0;
    bool ignored = false;
    const char *profile =
        event_options_given(options) ? options->profile : "dotnet-common,dotnet-sampled-thread-time";
    for (size_t i = 0; i < options->providers.count; i++)
        if (!event_providers_parse(&out->providers, options->providers.items[i], err))
            return false;
    if (profile && !event_profiles_add(&out->providers, profile, &rundown, err))
        return false;
    if (options->clr_events && *options->clr_events &&
        !event_profiles_add_clr(&out->providers, options->clr_events, options->clr_level, &ignored, err))
        return false;
    if (ignored && note)
        note(user, "--clrevents is ignored: --providers or --profile say what the runtime is asked");
    read_rundown(options, rundown, out);
    return read_buffer(options, out, err) &&
           (out->providers.count ||
            error_set(err, ERROR_USAGE, "--providers, --profile and --clrevents ask for no provider"));
}
