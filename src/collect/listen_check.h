/*
 * listen_check: whether the runtimes of a recording of events can be listened to, and if not, why the first
 * of them cannot.
 *
 * A recording in which nobody was heard has no events for a reason that its user should know.
 */
#ifndef CLRPERF_COLLECT_LISTEN_CHECK_H
#define CLRPERF_COLLECT_LISTEN_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/runtime_names.h"

struct listen_check {
    bool alone;       /* nothing but events is recorded: without them it has failed */
    struct error why; /* why the first could not be listened to when we began; or none */
};

/*
 * Looks at processes that were there before us: those that were chosen, or some of all. `names` is told of
 * each that cannot be listened to, now or soon. Fails when that is true of all that were chosen, and nothing
 * else is recorded.
 */
bool listen_check_begin(struct listen_check *check, const pid_t *chosen, size_t count,
                        struct runtime_names *names, struct error *err);
void listen_check_others(struct listen_check *check, const pid_t *pids, size_t count);
/* Nobody was heard. Fails with the reason; or, where that is no failure, tells `note`, which may be NULL. */
bool listen_check_unheard(const struct listen_check *check, const struct runtime_names *names,
                          void (*note)(void *user, const char *text), void *user, struct error *err);
/* How many processes of a finished recording had a .NET runtime of which nothing was heard. */
size_t listen_check_missed(const struct trace *t);

#endif
