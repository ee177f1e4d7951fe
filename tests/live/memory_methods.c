/*
 * memory_methods: what the memory of a .NET process tells about its methods, as text.
 *
 * Usage: memory_methods PID LOOKS. Looks so often, 100 ms apart, then names all code; one line a record on
 * stdout, as eventpipe_methods has them, and a summary on stderr.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/target_root.h"
#include "collect/memory_session.h"

static uint64_t methods, *addrs;
static size_t addr_count;

static void print_method(void *user, const struct runtime_method *m)
{
    (void)user;
    static const char *const changes[] = { "load", "unload", "exists" };
    const char *tier = code_tier_name((enum code_tier)m->tier);
    methods++;
    printf("%s %" PRIu64 " %" PRIx64 " %" PRIx64 " %s %s%s%s- %" PRIx64 " %" PRIx32 " %.*s\n",
           changes[m->change], m->time_ns, m->addr, m->size_bytes, tier ? tier : "-", m->jitted ? "j" : "-",
           m->dynamic ? "d" : "-", m->generic ? "g" : "-", m->module_id, m->token, (int)m->name.size,
           (const char *)m->name.data);
    addrs = realloc(addrs, (addr_count + 1) * sizeof *addrs);
    addrs[addr_count++] = m->addr + m->size_bytes / 2;
}

static void count_method(void *user, const struct runtime_method *m)
{
    (void)m;
    ++*(uint64_t *)user;
}

static double ms(uint64_t from_ns)
{
    return (double)(clock_monotonic_ns() - from_ns) / 1e6;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    pid_t pid = (pid_t)strtol(argv[1], NULL, 10);
    struct runtime_sink sink = { .method = print_method };
    struct memory_session *s;
    struct error err;
    int root;
    uint64_t start_ns = clock_monotonic_ns();
    bool ok = target_root_open(pid, &root, &err) && memory_session_start(pid, 0, root, &s, &err);
    if (!ok) {
        fprintf(stderr, "error: %s\n", err.what);
        return 1;
    }
    fprintf(stderr, "start %.1f ms\n", ms(start_ns));
    for (long i = strtol(argv[2], NULL, 10); ok && i > 0; i--) {
        uint64_t look_ns = clock_monotonic_ns();
        methods = 0;
        ok = memory_session_look(s, NULL, 0, &sink, &err);
        fprintf(stderr, "look %.1f ms, %" PRIu64 " new\n", ms(look_ns), methods);
        usleep(100000);
    }
    uint64_t all_ns = clock_monotonic_ns();
    methods = addr_count = 0;
    ok = ok && memory_session_name_all(s, &sink, &err);
    fprintf(stderr, "all %.1f ms, %" PRIu64 " methods\n", ms(all_ns), methods);
    uint64_t named = 0, at_ns = clock_monotonic_ns();
    struct runtime_sink counter = { .user = &named, .method = count_method };
    ok = ok && memory_session_name(s, addrs, addr_count < 500 ? addr_count : 500, &counter, &err);
    fprintf(stderr, "name %.1f ms, %" PRIu64 " of %zu\n", ms(at_ns), named,
            addr_count < 500 ? addr_count : 500);
    if (!ok)
        fprintf(stderr, "error: %s\n", err.what);
    memory_session_close(s);
    close(root);
    free(addrs);
    return ok ? 0 : 1;
}
