#include "cli/profile_options.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/own.h"
#include "base/units.h"
#include "cli/message.h"
#include "trace/facts.h"

/* "5s-10s", "5s-", "-10s": since the start of the capture. */
static bool choice_time(const char *text, struct profile_options *out, struct error *err)
{
    const char *dash = strchr(text, '-');
    char from[64] = "", to[64] = "";
    if (dash && (size_t)(dash - text) < sizeof from && strlen(dash + 1) < sizeof to) {
        memcpy(from, text, (size_t)(dash - text));
        memcpy(to, dash + 1, strlen(dash + 1));
        if ((!from[0] || units_parse_duration(from, &out->from_ns)) &&
            (!to[0] || units_parse_duration(to, &out->to_ns)) && (from[0] || to[0]) &&
            (!to[0] || out->from_ns < out->to_ns))
            return true;
    }
    return error_set(err, ERROR_USAGE, "--time wants FROM-TO, as in 2s-7.5s, 10s- or -1m, not '%s'", text);
}

/* option_list has no NULL at its end; the profile's lists do. */
static const char *const *choice_patterns(const struct option_list *list)
{
    static const char *none[1] = { NULL };
    if (!list->count)
        return none;
    list->items[list->count] = NULL; /* option_parse() leaves room */
    return list->items;
}

bool profile_choice_options(const struct profile_choice *choice, struct profile_options *out,
                            struct error *err)
{
    *out = (struct profile_options){ .raw_names = choice->raw_names, .kind = SAMPLE_CPU, .who = choice->who };
    out->include = choice_patterns(&choice->include);
    out->exclude = choice_patterns(&choice->exclude);
    if (choice->group && strcmp(choice->group, "runtime") != 0) {
        error_set(err, ERROR_USAGE, "--group does not know '%s'", choice->group);
        return error_hint(err, "--group runtime folds the runtime's frames by what they do");
    }
    out->group_runtime = choice->group != NULL;
    return !choice->time || choice_time(choice->time, out, err);
}

/* What a capture has samples of, by the names that --event takes; the first one is shown unasked. */
struct event_choice {
    const char *name;
    const char *other_name; /* or NULL */
    enum sample_kind kind;
};

/* Made by `record`, which says what it samples. */
static bool choice_is_recording(const struct trace *t)
{
    const char *format = trace_fact_value(t, FACT_FORMAT);
    return format && strcmp(format, "clrperf") == 0;
}

/* A file of another tool knows its event by that tool's name. */
static struct event_choice choice_cpu(const struct trace *t, const char *event)
{
    bool is_theirs = event && !choice_is_recording(t);
    return is_theirs ? (struct event_choice){ event, "cpu", SAMPLE_CPU }
                     : (struct event_choice){ "cpu", event, SAMPLE_CPU };
}

static size_t choice_events(const struct trace *t, struct event_choice out[3])
{
    const char *counted = trace_fact_value(t, FACT_COUNTED_EVENT);
    const char *event = trace_fact_value(t, FACT_EVENT);
    bool has_wall = trace_fact_value(t, FACT_WALL_EVENT);
    const char *format = trace_fact_value(t, FACT_FORMAT), *file = format ? format : "";
    /* a file of events that export made of samples says what they weigh */
    bool is_events =
        !trace_fact_value(t, FACT_UNIT) && (strcmp(file, "nettrace") == 0 || strcmp(file, "netperf") == 0);
    is_events |= choice_is_recording(t) && !t->samples.count;
    size_t count = 0;
    if (event || (!counted && !has_wall && !is_events))
        out[count++] = choice_cpu(t, event);
    if (has_wall)
        out[count++] = (struct event_choice){ "wall", NULL, SAMPLE_WALL };
    if (counted)
        out[count++] = (struct event_choice){ counted, NULL, SAMPLE_EVENT };
    return count;
}

bool profile_choice_has_samples(const struct trace *t)
{
    struct event_choice events[3];
    return choice_events(t, events) > 0;
}

/* A recording has what was asked for; in a file of another tool events that no one asks for are not read. */
static bool choice_has_none(const struct profile_choice *choice, const struct trace *t, struct error *err)
{
    if (choice_is_recording(t)) {
        if (choice->event)
            return error_set(err, ERROR_USAGE, "this capture has no samples of '%s'", choice->event);
        return error_set(err, ERROR_USAGE, "this capture has no samples");
    }
    if (t->events.count <= 1) {
        error_set(err, ERROR_USAGE, "this file has no samples");
        return error_hint(
            err, "clrperf report FILE events --counts tells which events it has, if any; dotnet-trace "
                 "samples with --profile dotnet-sampled-thread-time");
    }
    if (choice->event)
        error_set(err, ERROR_USAGE, "this file has no samples, and no events '%s' with stacks",
                  choice->event);
    else
        error_set(err, ERROR_USAGE, "this file has no samples, only events");
    return error_hint(err, "clrperf report FILE events --counts lists its events; clrperf report --help the "
                           "questions about them; dotnet-trace samples with --profile "
                           "dotnet-sampled-thread-time");
}

static bool choice_is_named(const struct event_choice *choice, const char *name)
{
    return strcmp(name, choice->name) == 0 || (choice->other_name && strcmp(name, choice->other_name) == 0);
}

static bool choice_unknown(const char *event, const struct trace *t, const struct event_choice *events,
                           size_t count, struct error *err)
{
    const char *left_out = trace_fact_value(t, FACT_EVENTS_LEFT_OUT);
    char known[256] = "";
    for (size_t i = 0, used = 0; i < count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", events[i].name);
    error_set(err, ERROR_USAGE, "this capture has no samples of '%s'", event);
    if (left_out)
        return error_hint(err, "it has: %s; the file's other events are not read: %s", known, left_out);
    return error_hint(err, "it has: %s; record others with: clrperf record -e cpu,context-switches", known);
}

bool profile_choice_event(const struct profile_choice *choice, const struct trace *t,
                          struct profile_options *out, struct error *err)
{
    struct event_choice events[3];
    size_t count = choice_events(t, events);
    for (size_t i = 0; i < count; i++)
        if (!choice->event || choice_is_named(&events[i], choice->event)) {
            out->kind = events[i].kind;
            return true;
        }
    return count ? choice_unknown(choice->event, t, events, count, err) : choice_has_none(choice, t, err);
}

/* An answer of nothing is no failure, but who asks with a slip of the pen should see it. */
void profile_choice_warn_empty(const struct profile_choice *choice, const struct profile *p,
                               const struct profile_options *options)
{
    const bool given[] = { choice->time, choice->who.process, choice->who.thread, choice->include.count,
                           choice->exclude.count };
    static const char *const names[] = { "--time", "--process", "--thread", "--include", "--exclude" };
    struct buffer which;
    if (p->counts.samples || !p->counts.recorded)
        return;
    if (choice->time && options->from_ns >= p->duration_ns) {
        message_warning("--time %s begins after the end: the recording lasts %s", choice->time,
                        units_duration(p->duration_ns).text);
        return;
    }
    buffer_init(&which, 64);
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        if (given[i])
            buffer_format(&which, "%s%s", count++ ? ", " : "", names[i]);
    buffer_u8(&which, 0);
    message_warning("%s %s none of the %s samples", (const char *)which.data, count > 1 ? "leave" : "leaves",
                    units_count(p->counts.recorded).text);
    buffer_done(&which);
}

const struct option_spec profile_choice_specs[] = {
    { NULL, 0, OPTION_HEADING, 0, "which samples", NULL, NULL },
    { "event", 0, OPTION_STRING, offsetof(struct profile_choice, event),
      "of a capture with several events: cpu, wall, context-switches; of one without samples: an "
      "event with stacks, GC/Triggered; of the question events: a glob",
      "NAME", NULL },
    { "time", 0, OPTION_STRING, offsetof(struct profile_choice, time),
      "only between two times since the start", "FROM-TO", NULL },
    { "process", 0, OPTION_STRING, offsetof(struct profile_choice, who.process), "only of this process",
      "PID|GLOB", NULL },
    { "thread", 0, OPTION_STRING, offsetof(struct profile_choice, who.thread), "only of this thread",
      "TID|GLOB", NULL },
    { "include", 0, OPTION_STRING_LIST, offsetof(struct profile_choice, include),
      "only samples with a frame that matches", "REGEX", NULL },
    { "exclude", 0, OPTION_STRING_LIST, offsetof(struct profile_choice, exclude),
      "no samples with a frame that matches", "REGEX", NULL },
    { "group", 0, OPTION_STRING, offsetof(struct profile_choice, group),
      "fold frames to one for each kind of work: runtime", "WHAT", NULL },
    { "raw-names", 0, OPTION_FLAG, offsetof(struct profile_choice, raw_names),
      "names as the runtime spells them", NULL, NULL },
    { 0 },
};
