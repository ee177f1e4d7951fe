/*
 * capture_dump: a capture's tables as text, for tests that need more than its exports tell.
 *
 * Usage: capture_dump FILE. Lines of fields with tabs between them:
 *   fact      KEY VALUE
 *   loss      REASON COUNT
 *   sample    TIME_NS PID TID WEIGHT
 *   location  PID ADDRESS FIRST_NS KIND RESOLVER RETURN NAME MODULE
 * ADDRESS is in hex; RETURN is 1 when the address is one a call returns to; NAME is the runtime's spelling.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/own.h"
#include "trace/trace_reader.h"

static void print_samples(const struct trace *t)
{
    for (size_t i = 0; i < t->samples.count; i++) {
        const struct trace_thread *thread = &t->threads.rows[t->samples.thread[i]];
        printf("sample\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\n", t->samples.time_ns[i],
               t->processes.rows[thread->process].pid, thread->tid, t->samples.weight[i]);
    }
}

static void print_locations(const struct trace *t)
{
    for (size_t i = 1; i < t->locations.count; i++) {
        const struct trace_location *at = &t->locations.rows[i];
        const struct trace_function *f = at->function ? &t->functions.rows[at->function] : NULL;
        printf("location\t%" PRIu32 "\t%" PRIx64 "\t%" PRIu64 "\t%s\t%s\t%d\t%s\t%s\n",
               at->process ? t->processes.rows[at->process].pid : 0, at->addr, at->first_ns,
               f ? code_kind_name((enum code_kind)f->kind) : "unknown",
               resolver_name((enum resolver)at->resolver), at->is_return, f ? trace_string(t, f->name) : "?",
               f ? trace_string(t, f->module) : "?");
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: capture_dump FILE\n");
        return 2;
    }
    AUTO_FD int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    struct source file;
    struct trace t;
    struct error err = { 0 };
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, &err) || !trace_reader_load(&file, &t, &err)) {
        fprintf(stderr, "capture_dump: %s: %s\n", argv[1], fd < 0 ? "cannot open it" : err.what);
        return 1;
    }
    for (size_t i = 1; i < t.facts.count; i++)
        printf("fact\t%s\t%s\n", trace_string(&t, t.facts.rows[i].key),
               trace_string(&t, t.facts.rows[i].value));
    for (size_t i = 1; i < t.losses.count; i++)
        printf("loss\t%s\t%" PRIu64 "\n", loss_reason_name((enum loss_reason)t.losses.rows[i].reason),
               t.losses.rows[i].count);
    print_samples(&t);
    print_locations(&t);
    trace_done(&t);
    return 0;
}
