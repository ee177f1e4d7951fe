/*
 * event_providers: which providers a runtime is asked to tell of, with keywords, level and arguments.
 *
 * Written `Name[:keywords[:level[:key=value;...]]]`, with commas between, as dotnet-trace has it: keywords in
 * hex with or without 0x (nothing: 0), the level as a number or a name (nothing: informational); a value that
 * holds ';' or '=' stands in quotes, and \r \n \t \" \\ \xHH \uHHHH mean what they do in C. A name that comes
 * again, in any case, adds its keywords; the more talkative level counts.
 */
#ifndef CLRPERF_CLR_EVENT_PROVIDERS_H
#define CLRPERF_CLR_EVENT_PROVIDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "clr/diagnostics_ipc.h"

enum event_level {
    EVENT_LEVEL_ALWAYS,
    EVENT_LEVEL_CRITICAL,
    EVENT_LEVEL_ERROR,
    EVENT_LEVEL_WARNING,
    EVENT_LEVEL_INFORMATIONAL,
    EVENT_LEVEL_VERBOSE,
};

struct event_provider {
    char *name; /* UTF-8 */
    char *args; /* "key=value;...", or NULL */
    uint64_t keywords;
    uint32_t level;
    const char *asked_by; /* "--profile": how it came here, static */
    /*
     * Events that are wanted of it; none: all. Runtimes before 10 cannot choose: there `light_keywords` are
     * asked for at `light_level` only, so that little else comes, and the rest at `level`.
     */
    uint32_t *event_ids;
    size_t event_id_count;
    uint64_t light_keywords;
    uint32_t light_level;
};

struct event_providers {
    struct event_provider *items; /* by name, each once, in the order they came */
    size_t count, capacity;
};

/* What one session with a runtime is asked for. */
struct event_request {
    struct event_providers providers;
    uint32_t buffer_mb;   /* of the target's memory */
    bool buffer_is_usual; /* nobody chose it: less will do where there is little */
    bool stacks;
    /* a list of what exists, at the end; see struct ipc_session_request */
    uint64_t rundown_keywords;
    bool rundown_chosen_only;
};

void event_request_done(struct event_request *r);
/* Whether it can be asked at all; ERROR_USAGE when it is more than a request holds. */
bool event_request_check(const struct event_request *r, struct error *err);
/*
 * As diagnostics_ipc has it. `providers`: room for r->providers.count, which the result borrows. `choose`:
 * with their choices of events, or without.
 */
struct ipc_session_request event_request_ipc(const struct event_request *r, bool choose,
                                             struct ipc_provider *providers);

void event_providers_init(struct event_providers *p);
void event_providers_done(struct event_providers *p);
/* By its name in any case, or NULL. */
struct event_provider *event_providers_find(const struct event_providers *p, const char *name);
/* Whether an event is among those that are asked for: all of its provider, or those that it chooses. */
bool event_providers_choose(const struct event_providers *p, const char *name, uint32_t event_id);
/*
 * Adds what `more` says to what is there. A choice of events grows; with a provider whose events are all
 * wanted it is none. Copies all. Fails with ERROR_USAGE when both have arguments.
 */
bool event_providers_add(struct event_providers *p, const struct event_provider *more, struct error *err);
/* Reads a list. Fails with ERROR_USAGE; what came before the wrong one was added. */
bool event_providers_parse(struct event_providers *p, const char *list, struct error *err);
/* "4", "verbose", "Informational"; numbers above 5 mean 5. */
bool event_level_parse(const char *text, uint32_t *out);
const char *event_level_name(uint32_t level);

/*
 * Whether both kinds of allocation events are asked for: the randomised one switches the other one off in
 * the whole process, also for others who listen.
 */
bool event_providers_clash(const struct event_providers *p);

#endif
