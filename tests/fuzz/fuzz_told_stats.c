/*
 * Events of runtimes as every question reads them. Each: u8 what (bits 0-1 the provider, 2-3 the thread, 4 a
 * second process, 5 addresses of 4 bytes, 6 a stack), u8 version, u16 id, u8 ns since the one before, u8
 * bytes of payload, then these.
 */
#include <stdint.h>
#include <stdlib.h>

#include "analyse/alloc_stats.h"
#include "analyse/exception_stats.h"
#include "analyse/finalized_types.h"
#include "analyse/gc_stats.h"
#include "analyse/http_spans.h"
#include "analyse/jit_stats.h"
#include "analyse/lock_stats.h"
#include "analyse/task_spans.h"
#include "analyse/threadpool_stats.h"
#include "clr/runtime_events.h"
#include "trace/builder.h"

enum { EVENTS_MAX = 2000, PID = 100, TID = 10, CHAINS = 64 };

static const char *const providers[] = { RUNTIME_PROVIDER, RUNTIME_RUNDOWN_PROVIDER,
                                         "Microsoft.AspNetCore.Hosting",
                                         "System.Threading.Tasks.TplEventSource" };

static uint32_t named_stack(struct trace_builder *b)
{
    uint32_t functions[2];
    for (unsigned i = 0; i < 2; i++)
        functions[i] = trace_builder_function(
            b,
            &(struct trace_function){ .name = trace_add_string(&b->trace, i ? "System.Runtime.EH::A()" : "B"),
                                      .module = trace_add_string(&b->trace, "System.Private.CoreLib"),
                                      .kind = CODE_R2R });
    return trace_builder_named_stack(b, functions, 2);
}

static void read_event(struct trace_builder *b, struct cursor *c, uint32_t stack, uint64_t *time_ns)
{
    uint8_t what = cursor_u8(c), version = cursor_u8(c);
    uint16_t id = cursor_u16le(c);
    *time_ns += cursor_u8(c);
    struct span payload = cursor_bytes(c, cursor_u8(c));
    uint32_t pid = PID + (what >> 4 & 1), tid = TID + (what >> 2 & 3);
    struct trace_event_type type = { .provider = trace_add_string(&b->trace, providers[what & 3]),
                                     .event_id = id,
                                     .version = version,
                                     .pointer_size = what & 1 << 5 ? 4 : 8 };
    struct trace_event row = { .time_ns = *time_ns,
                               .type = trace_builder_event_type(b, &type),
                               .process = trace_builder_process_start(b, pid, 0),
                               .thread = tid == TID ? 0 : trace_builder_thread(b, pid, tid, 0),
                               .stack = what & 1 << 6 ? stack : 0 };
    if (cursor_ok(c))
        trace_push_event(&b->trace, &row, payload);
}

static void ask_gc(const struct trace *t)
{
    struct gc_stats gc;
    uint64_t pause_ns = 0, complete = 0;
    gc_stats_init(&gc, t, 0, 0);
    for (size_t i = 0; i < gc.row_count; i++) {
        const struct gc_record *r = &gc.rows[i];
        complete += r->complete;
        pause_ns += r->complete ? r->pause_ns : 0;
        if (r->complete && r->end_ns < r->start_ns)
            abort();
        for (uint32_t at = r->first_heap, steps = 0; at; at = gc.heaps[at].next)
            if (++steps > r->heaps || at >= gc.heap_count)
                abort();
    }
    for (size_t i = 0; i < gc.process_count; i++) {
        complete -= gc.processes[i].all.count;
        pause_ns -= gc.processes[i].all.pause_ns;
    }
    if (complete || pause_ns)
        abort(); /* sums are of the rows */
    gc_stats_done(&gc);
}

/* The groups of a tally add up to it. */
static void ask_tally(const struct event_tally *tally)
{
    for (unsigned by = 0; by < TALLY_BYS; by++) {
        struct event_groups groups;
        uint64_t count = 0;
        size_t rows = 0;
        event_groups_init(&groups, tally, (enum tally_by)by);
        for (size_t i = 0; i < groups.count; i++) {
            count += groups.rows[i].sum.count;
            rows += groups.rows[i].count;
        }
        if (count != tally->total.count || rows != tally->row_count - 1)
            abort();
        event_groups_done(&groups);
    }
}

static void ask_spans(const struct span_table *table)
{
    struct span_groups groups;
    uint64_t count = 0;
    span_groups_init(&groups, table);
    for (size_t i = 0; i < groups.count; i++) {
        count += groups.rows[i].count;
        if (span_ns(span_group_at(&groups, &groups.rows[i], 0.5)) >
            span_ns(span_group_at(&groups, &groups.rows[i], 1)))
            abort();
    }
    if (count != table->count)
        abort();
    span_groups_done(&groups);
}

static void ask_all(const struct trace *t)
{
    struct alloc_stats alloc;
    struct exception_stats exceptions;
    struct lock_stats locks;
    struct jit_stats jit;
    struct threadpool_stats pool;
    struct http_spans http;
    struct task_spans tasks;
    struct finalized_types finalized;
    finalized_types_init(&finalized, t, 0, 0);
    finalized_types_done(&finalized);
    ask_gc(t);
    alloc_stats_init(&alloc, t, false, 0, 0);
    ask_tally(&alloc.tally);
    alloc_stats_done(&alloc);
    exception_stats_init(&exceptions, t, false, 0, 0);
    ask_tally(&exceptions.tally);
    exception_stats_done(&exceptions);
    lock_stats_init(&locks, t, true, 0, 0);
    ask_tally(&locks.tally);
    lock_stats_done(&locks);
    jit_stats_init(&jit, t, false, 0, 0);
    if (jit.all.count != jit.row_count)
        abort();
    jit_stats_done(&jit);
    threadpool_stats_init(&pool, t, 0, 0);
    threadpool_stats_done(&pool);
    http_spans_init(&http, t, false, 0, 0);
    ask_spans(&http.table);
    http_spans_done(&http);
    task_spans_init(&tasks, t, false, 0, 0);
    ask_spans(&tasks.table);
    task_spans_done(&tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_builder b;
    struct cursor c = cursor_over(span_of(data, size));
    uint64_t time_ns = 1000;
    trace_builder_init(&b, CHAINS);
    uint32_t stack = named_stack(&b);
    for (unsigned i = 0; i < EVENTS_MAX && cursor_left(&c); i++)
        read_event(&b, &c, stack, &time_ns);
    ask_all(&b.trace);
    trace_builder_done(&b);
    return 0;
}
