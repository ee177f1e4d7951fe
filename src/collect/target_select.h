/*
 * target_select: from what the user said (pids, names, a container) to the processes meant.
 */
#ifndef CLRPERF_COLLECT_TARGET_SELECT_H
#define CLRPERF_COLLECT_TARGET_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "collect/target_access.h"
#include "collect/target_list.h"

/*
 * All text is borrowed. Each part narrows the choice: -n Web with a container means those called Web in it;
 * several names, or pids, are as many choices. Nothing said: the one there is.
 */
struct target_query {
    const char *const *pids; /* each "4711" or "4711,4712" */
    size_t pid_count;
    const char *const *names; /* globs (* ? [...]) on entry assembly and process name, cases ignored */
    size_t name_count;
    const char *container; /* the beginning of an id, or a name; NULL: any */
    const char
        *cgroup; /* a path below the cgroup mount (/sys/fs/cgroup/... is fine too), with all below it */
    const char *router; /* --dsrouter of .NET's tools: nobody here starts one */
    bool all;           /* every .NET process */
    bool one;           /* the verb wants exactly one */
    bool begun; /* what a pid chooses is only begun to be looked at: target_finish() is the caller's */
};

/*
 * ERROR_USAGE when parts exclude each other: a pid, or all, leaves nothing to narrow. ERROR_UNSUPPORTED with
 * a router.
 */
bool target_query_check(const struct target_query *query, struct error *err);
/* Whether a name chooses it: a glob on its own, or on that of its entry assembly with or without .dll. */
bool target_is_called(const struct target *t, const char *glob);
/* Is there anything in it, or is the only process meant? */
bool target_query_is_empty(const struct target_query *query);
/*
 * ERROR_USAGE as target_query_check(); ERROR_TARGET when nothing fits or, with `one`, when several do: the
 * message lists them. A pid may be any process, .NET or not; everything else finds .NET processes. Tools of
 * the SDK are only meant when they are asked for.
 */
bool target_select(const struct target_query *query, struct target_list *out, struct error *err);
/* As target_select(), and every one must allow `ability`. */
bool target_select_able(const struct target_query *query, enum target_ability ability,
                        struct target_list *out, struct error *err);

#endif
