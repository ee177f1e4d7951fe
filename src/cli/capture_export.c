#include "cli/capture_export.h"

#include "analyse/timeline.h"
#include "base/units.h"
#include "cli/message.h"

/* Of a file of events. */
static enum import_want wants(const void *user, const char *provider, uint32_t event_id)
{
    const struct export_format *format = user;
    if (format->timeline && timeline_wants(provider, event_id))
        return IMPORT_PAYLOADS;
    return import_wants_samples(NULL, provider, event_id);
}

bool capture_export_read(const char *path, const struct export_format *format,
                         const struct profile_choice *choice, struct capture *out, struct error *err)
{
    const struct import_options how = {
        .wants = format->write_trace ? NULL : wants,
        .user = format,
        .runs = format->tree_only && !choice->time,
    };
    bool ok = format->write_trace ? capture_read(path, &how, out, err)
                                  : capture_read_stacks(path, &how, choice->event, out, err);
    if (ok)
        capture_name(out);
    return ok;
}

void capture_export_warn_empty(const struct capture *c, const struct export_format *format, const char *made)
{
    if (!format->write_trace && !format->timeline && !profile_choice_has_samples(&c->b.trace))
        message_warning(
            "'%s' is empty: nothing that was told has a stack; -e cpu asks for samples, --profile "
            "dotnet-sampled-thread-time too",
            made);
}

bool capture_export_build(const struct capture *c, const struct export_format *format,
                          const struct profile_choice *choice, struct profile **out, struct error *err)
{
    const struct trace *t = &c->b.trace;
    struct profile_options options;
    struct profile *p = NULL;
    if (format->write_trace) {
        *out = NULL;
        return true;
    }
    /* a recording of events alone is no failure: marks of them can be all that is wanted */
    bool chosen = (c->is_ours || choice->may_be_none) && !choice->event && !profile_choice_has_samples(t);
    if (!profile_choice_options(choice, &options, err) ||
        (!chosen && !profile_choice_event(choice, t, &options, err)))
        return false;
    options.tree_only = format->tree_only;
    options.timeline = format->timeline;
    if (!profile_build(t, &options, &p, err))
        return false;
    profile_choice_warn_empty(choice, p, &options);
    if (p->timeline.left_out)
        message_warning("%s collections, pauses and exceptions were left out: more than fit",
                        units_count(p->timeline.left_out).text);
    *out = p;
    return true;
}

bool capture_export_put(const struct capture *c, const struct export_format *format, const struct profile *p,
                        const struct export_options *shape, int fd, struct error *err)
{
    return p ? export_profile_to_fd(format, p, shape, fd, err)
             : export_trace_to_fd(format, &c->b.trace, fd, err);
}

bool capture_export_write(const struct capture *c, const struct export_format *format,
                          const struct profile_choice *choice, const struct export_options *shape, int fd,
                          struct error *err)
{
    struct profile *p;
    if (!capture_export_build(c, format, choice, &p, err))
        return false;
    bool ok = capture_export_put(c, format, p, shape, fd, err);
    profile_free(p);
    return ok;
}
