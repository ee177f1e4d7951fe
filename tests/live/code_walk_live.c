/*
 * code_walk_live: names the jitted code of a process from its memory, as text.
 *
 * Usage: code_walk_live PID [WALKS] | PID find ADDR... One line a piece of code on stdout:
 *   addr size_bytes kind tier token name <tab> module <tab> target <tab> import
 * and a summary on stderr. To compare with perf maps and the runtime's own events.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/target_root.h"
#include "clr/code_walk.h"
#include "collect/live_memory.h"
#include "root_files.h"

static bool print(void *user, const struct found_method *m)
{
    static const char *const kinds[] = { "method", "dynamic", "stub" };
    static const char *const tiers[] = { "-", "tier0", "tier0i", "osr", "tier1", "optimized" };
    (void)user;
    printf("%" PRIx64 " %" PRIx64 " %s %s %" PRIx32 " %s\t%s\t%s\t%s\n", m->begin,
           m->end ? m->end - m->begin : 0, kinds[m->kind], tiers[m->tier], m->token, m->name, m->module,
           m->target, m->import);
    return true;
}

static bool count(void *user, const struct found_method *m)
{
    (void)m;
    ++*(uint64_t *)user;
    return true;
}

static double ms(uint64_t from_ns)
{
    return (double)(clock_monotonic_ns() - from_ns) / 1e6;
}

static void walk_all(struct code_walk *walk, struct live_memory *live, int walks)
{
    const struct code_walk_report *r = code_walk_report(walk);
    for (int i = 0; i < walks; i++) {
        uint64_t found = 0, pages = r->pages, start_ns = clock_monotonic_ns();
        code_walk_list(walk, WALK_ALL, i ? count : print, &found);
        fprintf(stderr,
                "walk: %.1f ms; %" PRIu64 " methods, %" PRIu64 " dynamic, %" PRIu64 " stubs, %" PRIu64
                " unnamed, %" PRIu64 " broken; %" PRIu64 " pages, %" PRIu64 " modules, %" PRIu64 " ranges\n",
                ms(start_ns), r->methods, r->dynamic, r->stubs, r->unnamed, r->broken, r->pages - pages,
                r->modules, r->ranges);
        uint64_t renew_ns = clock_monotonic_ns();
        struct error err;
        if (i + 1 < walks && !live_memory_refresh(live, &err)) {
            fprintf(stderr, "error: %s\n", err.what);
            break;
        }
        code_walk_renew(walk);
        fprintf(stderr, "renewed in %.1f ms\n", ms(renew_ns));
    }
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    pid_t pid = (pid_t)strtol(argv[1], NULL, 10);
    struct error err = { 0 };
    struct live_memory *live;
    struct code_walk *walk;
    int root = -1;
    uint64_t start_ns = clock_monotonic_ns();
    if (!target_root_open(pid, &root, &err) || !live_memory_open(pid, 0, &live, &err)) {
        fprintf(stderr, "error: %s\n", err.what);
        return 1;
    }
    struct module_files files = { root_files_open, root_files_close, &root };
    bool from_memory = getenv("NO_FILES") != NULL;
    if (!code_walk_open(live_memory_view(live), from_memory ? NULL : &files, &walk, &err)) {
        fprintf(stderr, "error: %s\n", err.what);
        return 1;
    }
    const struct code_walk_report *r = code_walk_report(walk);
    fprintf(stderr, "open: %.1f ms; root by %s, layout of %s %s, %u of %u methods agree\n", ms(start_ns),
            runtime_root_way_name(r->root), r->layout, layout_way_name(r->way), r->agreed, r->checked);
    if (argc > 2 && strcmp(argv[2], "find") == 0) {
        for (int i = 3; i < argc; i++) {
            struct found_method found;
            uint64_t one_ns = clock_monotonic_ns();
            bool there = code_walk_find(walk, strtoull(argv[i], NULL, 16), &found);
            fprintf(stderr, "find: %.3f ms\n", ms(one_ns));
            if (there)
                print(NULL, &found);
            else
                printf("%s -\n", argv[i]);
        }
    } else {
        walk_all(walk, live, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1);
    }
    fprintf(stderr, "own CPU %.1f ms, peak RSS %.1f MB, %u hangs\n", (double)clock_own_cpu_ns() / 1e6,
            (double)clock_own_peak_rss_bytes() / 1e6, live_memory_hangs(live));
    code_walk_close(walk);
    live_memory_close(live);
    close(root);
    return 0;
}
