#include "cli/record_sources.h"

#include <inttypes.h>
#include <string.h>

#include "clr/event_profiles.h"
#include "clr/runtime_events.h"

static void list_topics(struct buffer *out)
{
    buffer_string(out, "a list of: cpu, context-switches");
    for (const struct event_topic *t = event_topics; t->name; t++)
        buffer_format(out, ", %s", t->name);
    buffer_u8(out, 0);
}

static bool refuse(struct error *err, const char *text, size_t size)
{
    struct buffer known;
    buffer_init(&known, 4096);
    list_topics(&known);
    if (size)
        error_set(err, ERROR_USAGE, "-e does not know '%.*s'", (int)size, text);
    else
        error_set(err, ERROR_USAGE, "-e names nothing to record");
    error_hint(err, "%s", (const char *)known.data);
    buffer_done(&known);
    return false;
}

/* A word of -e's list. */
struct word {
    const char *text; /* not ended by a 0 */
    size_t size;
    bool cpu, context_switches; /* what only the kernel sees */
};

static bool word_is(const struct word *w, const char *name)
{
    return w->size == strlen(name) && memcmp(w->text, name, w->size) == 0;
}

/* The next one of *list, which may be NULL; false behind the last. */
static bool next_word(const char **list, struct word *out)
{
    const char *at = *list;
    if (!at || !*at)
        return false;
    *out = (struct word){ .text = at, .size = strcspn(at, ",") };
    out->cpu = word_is(out, "cpu") || word_is(out, "cpu-clock") || word_is(out, "cycles"); /* perf's words */
    out->context_switches = word_is(out, "context-switches");
    *list = at + out->size + (at[out->size] == ',');
    return true;
}

bool record_sources_want_kernel(const char *list)
{
    struct word word;
    while (next_word(&list, &word))
        if (word.cpu || word.context_switches)
            return true;
    return false;
}

static bool read_list(const char *list, struct record_sources *out, struct error *err)
{
    struct word word = { 0 };
    while (next_word(&list, &word)) {
        out->cpu |= word.cpu;
        out->context_switches |= word.context_switches;
        if (word.cpu || word.context_switches)
            continue;
        if (!event_topics_add(&out->topics, word.text, word.size))
            return refuse(err, word.text, word.size);
        out->has_topics = true;
    }
    return word.text || refuse(err, "", 0);
}

/* What was asked in so many words says more: a topic joins it, so that no event comes twice. */
static bool join(struct record_sources *s, struct error *err)
{
    for (size_t i = 0; s->has_asked && i < s->topics.count; i++)
        if (!event_providers_add(&s->asked.providers, &s->topics.items[i], err))
            return false;
    if (s->has_asked)
        event_providers_done(&s->topics);
    s->has_topics &= !s->has_asked;
    return true;
}

static bool check_clash(const struct record_sources *s, bool force,
                        void (*note)(void *user, const char *text), void *user, struct error *err)
{
    if (!event_providers_clash(s->has_asked ? &s->asked.providers : &s->topics))
        return true;
    if (!s->has_asked && !force) {
        error_set(err, ERROR_USAGE, "alloc and alloc-sampled exclude each other: the runtime sends only one");
        return error_hint(err, "alloc-sampled needs .NET 10 and is the more exact");
    }
    if (note)
        note(user, "allocation sampling (keyword 0x80000000000) switches AllocationTick off in the whole "
                   "process, also for others who listen to it");
    return true;
}

static bool read_sources(const char *list, const struct event_options *options, bool force,
                         void (*note)(void *user, const char *text), void *user, struct record_sources *out,
                         struct error *err)
{
    *out = (struct record_sources){ .has_asked = event_options_given(options) };
    if (!list && !out->has_asked)
        out->cpu = true;
    return (!list || read_list(list, out, err)) && event_options_buffer(options, &out->buffer_mb, err) &&
           (!out->has_asked || event_options_read(options, note, user, &out->asked, err)) && join(out, err) &&
           (!out->has_asked || event_request_check(&out->asked, err)) &&
           check_clash(out, force, note, user, err);
}

bool record_sources_read(const char *list, const struct event_options *options, bool force,
                         void (*note)(void *user, const char *text), void *user, struct record_sources *out,
                         struct error *err)
{
    if (!read_sources(list, options, force, note, user, out, err))
        return false;
    if (note && event_providers_find(&out->asked.providers, RUNTIME_SAMPLER_PROVIDER))
        note(user,
             "the runtime's own sampler tells where threads are, not whether they run: report shows its "
             "samples as wall time; -e cpu samples what runs");
    return true;
}

bool record_sources_read_stream(const char *list, const struct event_options *options, bool force,
                                void (*note)(void *user, const char *text), void *user,
                                struct record_sources *out, struct error *err)
{
    if (!read_sources(list, options, force, note, user, out, err))
        return false;
    out->cpu = false;
    if (out->has_asked)
        return true;
    if (!event_options_read(options, note, user, &out->asked, err))
        return false;
    out->has_asked = true;
    if (out->has_topics) { /* rather than what is asked when nothing is said */
        event_providers_done(&out->asked.providers);
        out->asked.providers = out->topics;
        event_providers_init(&out->topics);
        out->chosen = true;
        out->has_topics = false;
    }
    return true;
}

void record_sources_done(struct record_sources *s)
{
    event_providers_done(&s->topics);
    event_request_done(&s->asked);
}

void record_sources_text(const struct record_sources *s, const char *list, uint64_t rate_hz,
                         struct buffer *out)
{
    if (s->cpu)
        buffer_format(out, "CPU samples at %" PRIu64 " Hz", rate_hz);
    if (s->context_switches)
        buffer_format(out, "%scontext switches", out->size ? ", " : "");
    struct word word;
    while (next_word(&list, &word))
        if (!word.cpu && !word.context_switches)
            buffer_format(out, "%s%.*s", out->size ? ", " : "", (int)word.size, word.text);
    for (size_t i = 0; i < s->asked.providers.count && s->has_asked; i++)
        buffer_format(out, "%s%s", out->size ? ", " : "", s->asked.providers.items[i].name);
    buffer_u8(out, 0);
}
