/*
 * capture_dump: a capture's tables as text, for tests that need more than its exports tell.
 *
 * Usage: capture_dump FILE. Lines of fields with tabs between them:
 *   fact      KEY VALUE
 *   loss      REASON COUNT
 *   sample    TIME_NS PID TID WEIGHT
 *   event     TIME_NS PID TID PROVIDER ID VERSION PAYLOAD
 *   told      PID PROVIDER KEYWORDS LEVEL FROM_NS TO_NS
 *   location  PID ADDRESS FIRST_NS KIND RESOLVER RETURN NAME MODULE
 * ADDRESS, KEYWORDS and PAYLOAD are in hex; TID is 0 where the thread is not known; RETURN is 1 when the
 * address is one a call returns to; NAME is the runtime's spelling.
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

static void print_events(const struct trace *t)
{
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        const struct trace_event_type *type = &t->event_types.rows[row->type];
        struct span payload = trace_event_payload(t, row);
        printf("event\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%s\t%" PRIu32 "\t%" PRIu32 "\t", row->time_ns,
               t->processes.rows[row->process].pid, t->threads.rows[row->thread].tid,
               trace_string(t, type->provider), type->event_id, type->version);
        for (size_t at = 0; at < payload.size; at++)
            printf("%02x", payload.data[at]);
        printf("\n");
    }
    for (size_t i = 1; i < t->subscriptions.count; i++) {
        const struct trace_subscription *row = &t->subscriptions.rows[i];
        printf("told\t%" PRIu32 "\t%s\t%" PRIx64 "\t%u\t%" PRIu64 "\t%" PRIu64 "\n",
               t->processes.rows[row->process].pid, trace_string(t, row->provider), row->keywords, row->level,
               row->from_ns, row->to_ns);
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
    print_events(&t);
    print_locations(&t);
    trace_done(&t);
    return 0;
}
