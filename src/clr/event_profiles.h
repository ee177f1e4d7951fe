/*
 * event_profiles: names that people use for what they want a runtime to tell: profiles and event names of
 * dotnet-trace, and our own topics.
 */
#ifndef CLRPERF_CLR_EVENT_PROFILES_H
#define CLRPERF_CLR_EVENT_PROFILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "clr/event_providers.h"

struct event_profile {
    const char *name, *summary;
    const char *providers; /* as event_providers_parse() reads them */
    uint64_t rundown_keywords;
};

/* All of dotnet-trace's that a runtime can answer, and "none"; ends with a row without a name. */
extern const struct event_profile event_profiles[];

/*
 * Adds the profiles of a list with commas. What was asked for in another way stays as it is, and so does what
 * an earlier profile asked of the same provider. *rundown_keywords grows by theirs.
 */
bool event_profiles_add(struct event_providers *p, const char *list, uint64_t *rundown_keywords,
                        struct error *err);
/*
 * Adds events of the runtime by names of its keywords with '+' between, "gc+jit", in any case. `level`: text,
 * or NULL for informational. *out_ignored: the runtime's provider was there already, and stays as it is.
 */
bool event_profiles_add_clr(struct event_providers *p, const char *names, const char *level,
                            bool *out_ignored, struct error *err);

/* What `-e` understands of runtimes. */
struct event_topic {
    const char *name, *summary;
};

extern const struct event_topic event_topics[]; /* ends with a row without a name */

/* Adds what a topic needs; `name` has `size` bytes. False when there is none of this name. */
bool event_topics_add(struct event_providers *p, const char *name, size_t size);

#endif
