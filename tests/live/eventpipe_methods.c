/*
 * eventpipe_methods: what the runtime of a process tells about its methods, as text.
 *
 * Usage: eventpipe_methods PID SECONDS, or PID -: until standard input ends. One line a record on stdout:
 *   change time_ns addr size_bytes tier flags module_id token name
 * and a summary on stderr. To compare with a perf map by hand and in tests.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/runtime_session.h"

static uint64_t methods, modules;

static void print_method(void *user, const struct runtime_method *m)
{
    (void)user;
    static const char *const changes[] = { "load", "unload", "exists" };
    const char *tier = code_tier_name((enum code_tier)m->tier);
    methods++;
    printf("%s %" PRIu64 " %" PRIx64 " %" PRIx64 " %s %s%s%s%s %" PRIx64 " %" PRIx32 " %.*s\n",
           changes[m->change], m->time_ns, m->addr, m->size_bytes, tier ? tier : "-", m->jitted ? "j" : "-",
           m->dynamic ? "d" : "-", m->generic ? "g" : "-", m->cold ? "c" : "-", m->module_id, m->token,
           (int)m->name.size, (const char *)m->name.data);
}

static void print_module(void *user, const struct runtime_module *m)
{
    (void)user;
    modules++;
    printf("module%d %" PRIu64 " %" PRIx64 " %.*s\n", (int)m->change, m->time_ns, m->module_id,
           (int)m->path.size, (const char *)m->path.data);
}

/* Nobody writes to it: it can be read when it ends. */
static bool input_ended(void)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    return poll(&input, 1, 0) > 0;
}

static bool drain_until(struct runtime_session *s, const struct runtime_sink *sink, uint64_t deadline_ns,
                        struct error *err)
{
    while (!runtime_session_ended(s)) {
        uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= deadline_ns)
            return true;
        struct pollfd wait[RUNTIME_SESSION_STREAMS];
        poll(wait, runtime_session_polls(s, wait), (int)((deadline_ns - now_ns) / 1000000) + 1);
        if (!runtime_session_drain(s, sink, err))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    struct error err = { 0 };
    struct runtime_session *s;
    const struct runtime_session_options options = { .precompiled = argc > 3 };
    const struct runtime_sink sink = { .method = print_method, .module = print_module };
    uint64_t start_ns = clock_monotonic_ns();
    if (!runtime_session_start((pid_t)strtol(argv[1], NULL, 10), 0, &options, &s, &err)) {
        fprintf(stderr, "error: %s\n  try: %s\n", err.what, err.hint);
        return 1;
    }
    uint64_t started_ns = clock_monotonic_ns();
    bool ok = true;
    if (argv[2][0] == '-')
        while (ok && !runtime_session_ended(s) && !input_ended())
            ok = drain_until(s, &sink, clock_monotonic_ns() + UINT64_C(100000000), &err);
    else
        ok = drain_until(s, &sink, started_ns + strtoull(argv[2], NULL, 10) * 1000000000, &err);
    uint64_t stop_ns = clock_monotonic_ns();
    ok = ok && runtime_session_stop(s, &err) && drain_until(s, &sink, stop_ns + UINT64_C(60000000000), &err);
    if (!ok)
        fprintf(stderr, "error: %s\n", err.what);
    struct runtime_session_counts c = runtime_session_counts(s);
    fprintf(stderr,
            "runtime '%s', assembly '%s', command line '%s'\n%" PRIu64 " methods, %" PRIu64
            " modules, %" PRIu64 " events, %" PRIu64 " bytes, %" PRIu64 " lost, %" PRIu64 " skipped, %" PRIu64
            " replaced; start %.1f ms, stop to end %.1f ms, own CPU %.1f ms; %s\n",
            runtime_session_version(s), runtime_session_entry_assembly(s), runtime_session_command_line(s),
            methods, modules, c.events, c.bytes, c.lost, c.skipped, c.replaced,
            (double)(started_ns - start_ns) / 1e6, (double)(clock_monotonic_ns() - stop_ns) / 1e6,
            (double)clock_own_cpu_ns() / 1e6, runtime_session_complete(s) ? "complete" : "incomplete");
    bool complete = runtime_session_complete(s);
    runtime_session_close(s);
    return ok && complete ? 0 : 1;
}
