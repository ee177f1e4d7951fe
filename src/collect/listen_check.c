#include "collect/listen_check.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/process_scan.h"
#include "collect/target_access.h"

enum { STARTED_S = 10 }; /* a runtime that is older has its socket, or never will */

/* Whether there will be something to listen to though there is not now: a runtime may be about to start. */
static bool may_come(const struct target *t, const struct error *why)
{
    uint64_t age_ns = clock_realtime_ns() - t->started_ns;
    bool old = t->started_ns < clock_realtime_ns() && age_ns > STARTED_S * UINT64_C(1000000000);
    return why->kind != ERROR_PERMISSION && !t->socket && !t->silent && !t->diagnostics_off &&
           !(old && t->runtime != RUNTIME_NONE);
}

static bool may_listen(struct listen_check *check, pid_t pid, struct error *err)
{
    struct target target;
    if (!target_open(pid, &target, NULL))
        return true;
    bool ok = target_require(&target, TARGET_EVENTS, err);
    if (!ok && !check->why.what[0])
        check->why = *err;
    ok = ok || may_come(&target, err);
    target_done(&target);
    return ok;
}

bool listen_check_begin(struct listen_check *check, const pid_t *chosen, size_t count,
                        struct runtime_names *names, struct error *err)
{
    size_t refused = 0;
    struct error why;
    for (size_t i = 0; i < count; i++) {
        if (may_listen(check, chosen[i], &why))
            continue;
        refused++;
        if (count > 1 || !check->alone)
            runtime_names_refused(names, (uint32_t)chosen[i], &why);
    }
    if (refused == 0 || refused < count || !check->alone)
        return true;
    *err = check->why;
    return false;
}

void listen_check_others(struct listen_check *check, const pid_t *pids, size_t count)
{
    struct error why;
    for (size_t i = 0; i < count; i++)
        may_listen(check, pids[i], &why);
}

bool listen_check_unheard(const struct listen_check *check, const struct runtime_names *names,
                          void (*note)(void *user, const char *text), void *user, struct error *err)
{
    static const char nobody[] = "no .NET runtime told of any event";
    const struct error *why = runtime_names_refusal(names);
    if (!why && check->why.what[0])
        why = &check->why;
    if (why && check->alone) {
        *err = *why;
        return false;
    }
    char text[sizeof nobody + sizeof why->what + sizeof why->hint + 8];
    snprintf(text, sizeof text, "%s%s%s%s%s", nobody, why ? ": " : "", why ? why->what : "",
             why && why->hint[0] ? "; " : "", why ? why->hint : "");
    if (note)
        note(user, text);
    return true;
}

static bool is_runtime(const struct trace *t, uint32_t image)
{
    const char *slash = strrchr(trace_string(t, t->images.rows[image].path), '/');
    return slash && strcmp(slash, "/libcoreclr.so") == 0;
}

/* One that lived for a moment was never looked at; what it mapped the kernel told. */
static void mark_runtimes(const struct trace *t, bool *marks)
{
    for (uint32_t i = 1; i < t->processes.count; i++)
        marks[i] = process_scan_has_coreclr(t, i);
    for (uint32_t i = 1; i < t->mappings.count; i++)
        if (is_runtime(t, t->mappings.rows[i].image))
            marks[t->mappings.rows[i].process] = true;
}

size_t listen_check_missed(const struct trace *t)
{
    AUTO_FREE bool *missed = mem_alloc(t->processes.count, sizeof *missed);
    size_t count = 0;
    mark_runtimes(t, missed);
    for (uint32_t i = 0; i < t->subscriptions.count; i++)
        missed[t->subscriptions.rows[i].process] = false;
    for (uint32_t i = 1; i < t->processes.count; i++)
        count += missed[i];
    return count;
}
