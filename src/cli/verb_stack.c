/*
 * verb_stack: `clrperf stack`, what every thread is doing now.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "base/urgency.h"
#include "cli/core_notes.h"
#include "cli/live_target.h"
#include "cli/message.h"
#include "cli/stack_crash.h"
#include "cli/stack_locks.h"
#include "cli/stack_view.h"
#include "cli/standard_output.h"
#include "cli/symbol_store.h"
#include "cli/target_finder.h"
#include "cli/target_options.h"
#include "cli/verb.h"
#include "collect/core_target.h"
#include "collect/process_scan.h"
#include "symbolize/symbolizer.h"

enum { STACK_CHAINS = 1024, STACK_EVERY_MS = 200 };

struct stack_values {
    struct target_options target;
    const char *thread;
    bool managed, json, idle, raw_names, async;
    uint32_t repeat;
    uint64_t every_ns;
};

/* What earlier runs left. */
struct stack_caches {
    struct symbol_cache symbols; /* that were fetched */
    struct kept_folder kept;
};

static struct symbolizer_options stack_symbolizer(const struct file_finder *files,
                                                  const struct stack_caches *caches)
{
    return (struct symbolizer_options){
        .files = *files,
        .cache = &caches->symbols,
        .kept = &caches->kept,
    };
}

static void live_symbolize(struct live_target *live, const struct stack_caches *caches,
                           struct trace_builder *b)
{
    struct symbolizer_options options = stack_symbolizer(&live->finder, caches);
    struct symbolizer_result result = { 0 };
    options.ahead = &live->ahead;
    options.kernel = true; /* its vdso */
    symbolizer_run(&b->trace, &b->functions, &options, &result);
}

static bool stack_print(struct stack_view *view, const struct stack_values *v, struct error *err)
{
    struct buffer out;
    if (v->json) {
        struct json_writer w;
        stdout_json(&w, &out);
        stack_view_json(view, v->managed, &w);
        bool ok = json_finish(&w, err);
        buffer_done(&out);
        return ok;
    }
    buffer_init(&out, OUTPUT_BYTES_MAX);
    struct stack_print how = { .managed_only = v->managed, .idle_too = v->idle || v->thread };
    stack_view_text(view, &how, &out);
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    return ok;
}

/* Says what the view lacks. */
static void view_warn(const struct stack_view *view)
{
    const struct stack_async *async = view->async;
    if (view->locks_problem.kind != ERROR_NONE)
        message_warning("owners of locks and deadlocks are not known: %s", view->locks_problem.what);
    if (async && async->problem.kind != ERROR_NONE)
        message_warning("no async chains: %s%s%s", async->problem.what, async->problem.hint[0] ? "; " : "",
                        async->problem.hint);
    else if (async && (async->graph.walk.late || async->map.cut || async->graph.cut || async->chains.cut))
        message_warning("async chains are missing: the heap is larger than what is read of one");
    else if (async && async->graph.walk.unexplained_bytes + async->graph.walk.unreadable_bytes)
        message_warning(
            "async chains may be missing: %s of the heap could not be read",
            units_size(async->graph.walk.unexplained_bytes + async->graph.walk.unreadable_bytes).text);
}

/* `b`: has the process and nothing else yet. */
static void view_read_async(struct stack_view *view, struct process_stacks *stacks, struct live_memory *live,
                            struct trace_builder *b, const struct symbolizer_options *options,
                            const struct stack_values *v)
{
    struct stack_async_naming naming = { b, view->process, options, v->raw_names };
    view->async = mem_alloc(1, sizeof *view->async);
    stack_async_read(stacks, live, &naming, view->async);
}

/* The number of the only thread that is meant; 0 when none is, or those of a name are. */
static pid_t stack_thread(const struct stack_values *v)
{
    uint64_t tid;
    return v->thread && units_parse_count(v->thread, &tid) && tid <= INT32_MAX ? (pid_t)tid : 0;
}

/* Where threads are meant by name, these alone. `whose`: of which there are none. */
static bool choose_threads(struct stack_view *view, const struct stack_values *v, const char *whose,
                           struct error *err)
{
    if (!v->thread || stack_thread(v) || stack_view_choose(view, v->thread))
        return true;
    error_set(err, ERROR_TARGET, "no thread of %s is called '%s'", whose, v->thread);
    return error_hint(err, "without --thread all are shown, with their names");
}

/* Says once what the result lacks. */
static void stack_warn(const struct process_stacks *stacks, const struct target *target)
{
    if (!stacks->walk && target->runtime == RUNTIME_CORECLR)
        message_warning("jitted methods have no names: %s", stacks->walk_error.what);
}

/* Begins a trace with the process as it is. Returns its row. */
static uint32_t live_describe(struct live_target *live, struct trace_builder *b)
{
    const struct process_stacks *stacks = &live->stacks;
    uint64_t now_ns = clock_monotonic_ns();
    trace_builder_init(b, STACK_CHAINS);
    uint32_t process = trace_builder_process_start(b, (uint32_t)stacks->target.pid, now_ns);
    process_scan_add_memory(b, process, stacks->target.memory, now_ns);
    process_scan_identity(b, process, &live->list.items[0]);
    return process;
}

static void live_read_async(struct stack_view *view, struct live_target *live,
                            const struct stack_caches *caches, const struct stack_values *v)
{
    struct symbolizer_options options = stack_symbolizer(&live->finder, caches);
    struct trace_builder b;
    live_describe(live, &b);
    view_read_async(view, &live->stacks, live->memory, &b, &options, v);
    trace_builder_done(&b);
}

/* What is managed cannot be told of a program compiled ahead that does not tell its methods: nothing is left
 * out rather than everything. */
static bool tells_managed(const struct stack_view *view, enum runtime_kind runtime)
{
    bool any = runtime != RUNTIME_NATIVEAOT;
    for (size_t i = 0; i < view->row_count && !any; i++)
        any = view->rows[i].managed;
    return any;
}

static bool print_as_told(struct stack_view *view, enum runtime_kind runtime, const struct stack_values *v,
                          bool first, struct error *err)
{
    struct stack_values own = *v;
    own.managed = v->managed && tells_managed(view, runtime);
    if (first && v->managed && !own.managed)
        message_warning("--managed shows all frames: this Native AOT program does not tell its methods");
    return stack_print(view, &own, err);
}

static bool live_look(struct live_target *live, const struct stack_caches *caches,
                      const struct stack_values *v, uint32_t number, struct error *err)
{
    bool first = number == 0, last = number + 1 == v->repeat;
    struct process_stacks *stacks = &live->stacks;
    struct stack_view view = { .started_s = (double)clock_realtime_ns() / 1e9 };
    if (!live_target_take(live, stack_thread(v), err))
        return false;
    if (last)
        live_target_finish_taking(live);
    view.process = live_describe(live, &view.b);
    live_target_unwind(live, &view.b);
    live_symbolize(live, caches, &view.b);
    if (first)
        stack_warn(stacks, &live->list.items[0]);
    bool ok =
        stack_view_make(&view, stacks, v->raw_names, err) && choose_threads(&view, v, "the process", err);
    if (ok)
        stack_locks_read(&view, true);
    if (ok && v->async)
        live_read_async(&view, live, caches, v);
    if (last)
        live_memory_finish(live->memory);
    if (ok && first)
        view_warn(&view);
    ok = ok && print_as_told(&view, live->list.items[0].runtime, v, first, err);
    stack_view_done(&view);
    return ok;
}

static bool live_stacks(const struct stack_caches *caches, const struct stack_values *v, struct error *err)
{
    struct live_target live;
    struct target_query query = target_options_query(&v->target);
    query.one = query.begun = true;
    urgency_begin(URGENCY_MS); /* who looks at a hung machine waits, threads too */
    bool ok = live_target_open(&live, &query, &caches->symbols, &caches->kept, err);
    for (uint32_t i = 0; ok && i < v->repeat; i++) {
        if (i > 0) {
            poll(NULL, 0, (int)(v->every_ns / 1000000));
            if (!v->json)
                ok = write(STDOUT_FILENO, "\n", 1) == 1;
        }
        ok = ok && live_look(&live, caches, v, i, err);
    }
    live_target_close(&live);
    return ok;
}

/* A core dump. */

static bool core_look(struct core_target *core, struct process_stacks *stacks,
                      const struct stack_caches *caches, const struct stack_values *v, struct error *err)
{
    struct stack_view view = { 0 };
    struct file_finder files = target_finder_core(core);
    struct symbolizer_options options = stack_symbolizer(&files, caches);
    struct symbolizer_result result = { 0 };
    core_target_take(core, stacks, stack_thread(v));
    if (stacks->threads.count == 0)
        return error_set(err, ERROR_TARGET, "the dump has no thread %s", v->thread);
    trace_builder_init(&view.b, STACK_CHAINS);
    view.process = core_target_describe(core, &view.b);
    process_stacks_find_code(stacks);
    process_stacks_unwind(stacks, &view.b, view.process);
    symbolizer_run(&view.b.trace, &view.b.functions, &options, &result);
    core_notes_warn(core, stacks->walk ? NULL : &stacks->walk_error);
    bool ok = stack_view_make(&view, stacks, v->raw_names, err) && choose_threads(&view, v, "the dump", err);
    if (ok) {
        stack_locks_read(&view, false);
        stack_crash_read(&view);
    }
    if (ok && v->async) {
        struct trace_builder b;
        trace_builder_init(&b, STACK_CHAINS);
        core_target_describe(core, &b);
        view_read_async(&view, stacks, NULL, &b, &options, v);
        trace_builder_done(&b);
    }
    if (ok)
        view_warn(&view);
    ok = ok && print_as_told(&view, core->runtime, v, true, err);
    stack_view_done(&view);
    return ok;
}

static bool core_stacks(const char *path, const struct stack_caches *caches, const struct stack_values *v,
                        struct error *err)
{
    struct core_target core;
    struct process_stacks stacks;
    mem_expect_large(LIVE_TARGET_MEMORY_BYTES);
    if (!core_target_open(path, &core, err))
        return false;
    struct stacks_target target = core_target_stacks(&core);
    process_stacks_init(&stacks, &target);
    bool ok = core_look(&core, &stacks, caches, v, err);
    process_stacks_done(&stacks);
    core_target_close(&core);
    return ok;
}

static bool stack_check(const struct stack_values *v, struct error *err)
{
    if (v->thread && v->async)
        return error_set(err, ERROR_USAGE, "--async shows what belongs to no thread: not with --thread");
    if (v->repeat == 0)
        return error_set(err, ERROR_USAGE, "--repeat wants at least 1");
    if (v->every_ns / 1000000 > INT32_MAX)
        return error_set(err, ERROR_USAGE, "--every is too long");
    return true;
}

static bool stack_run(struct verb_call *call, struct error *err)
{
    const struct stack_values *v = call->values;
    struct target_query query = target_options_query(&v->target);
    if (call->arg_count && !target_query_is_empty(&query))
        return error_set(err, ERROR_USAGE, "a core dump and a running process exclude each other");
    if (call->arg_count && v->repeat > 1)
        return error_set(err, ERROR_USAGE, "--repeat is for running processes: a core dump stays as it is");
    if (!stack_check(v, err))
        return false;
    struct stack_caches caches;
    mem_share_heap();
    symbol_store_open(&caches.symbols);
    symbol_store_open_kept(&caches.kept);
    bool ok = call->arg_count ? core_stacks(call->args[0], &caches, v, err) : live_stacks(&caches, v, err);
    kept_folder_done(&caches.kept);
    symbol_cache_close(&caches.symbols);
    return ok;
}

static const struct option_spec stack_options[] = {
    { "thread", 't', OPTION_STRING, offsetof(struct stack_values, thread),
      "only this one, by number or name; * and ? match", "TID|NAME", NULL },
    { "managed", 0, OPTION_FLAG, offsetof(struct stack_values, managed), "only managed frames", NULL, NULL },
    { "async", 0, OPTION_FLAG, offsetof(struct stack_values, async),
      "chains of waiting async methods too, from the heap; the process stands still while it is read", NULL,
      NULL },
    { "idle", 0, OPTION_FLAG, offsetof(struct stack_values, idle),
      "show threads that wait by design too: idle pool workers, finalizer, timer, tiering, ...", NULL, NULL },
    { "raw-names", 0, OPTION_FLAG, offsetof(struct stack_values, raw_names),
      "names as the runtime spells them", NULL, NULL },
    { "repeat", 0, OPTION_COUNT, offsetof(struct stack_values, repeat), "look N times (1)", "N", NULL },
    { "every", 0, OPTION_DURATION, offsetof(struct stack_values, every_ns), "time between two looks (200ms)",
      NULL, NULL },
    { "json", 0, OPTION_FLAG, offsetof(struct stack_values, json),
      "print JSON instead of text, a line a look", NULL, NULL },
    { NULL, 0, OPTION_GROUP, offsetof(struct stack_values, target), NULL, NULL, one_target_option_specs },
    { 0 },
};

const struct verb verb_stack = {
    .name = "stack",
    .args = "[CORE]",
    .summary = "show what every thread is doing now",
    .details =
        "  Each thread is stopped for some microseconds by ptrace, a few on their way at a time; the runtime "
        "need "
        "not help, so\n"
        "  that a hung or stopped process, or one with diagnostics switched off, shows its stacks too.\n"
        "  Equal stacks are shown once; the leaf comes first.\n"
        "  CORE is a core dump of the kernel, gcore or createdump: its threads are shown instead.",
    .options = stack_options,
    .defaults = &(const struct stack_values){ .repeat = 1, .every_ns = STACK_EVERY_MS * UINT64_C(1000000) },
    .values_size = sizeof(struct stack_values),
    .args_max = 1,
    .run = stack_run,
};
