#include "analyse/jit_stats.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/module_names.h"
#include "analyse/told_events.h"
#include "base/mem.h"
#include "base/own.h"
#include "clr/method_code.h"
#include "clr/method_name.h"
#include "clr/runtime_events.h"

enum { NAME_BYTES_MAX = 1 << 20, OPEN_MAX = 256, REFUSALS_MAX = 256, COLD_BEHIND_MAX = 64 };

static const uint16_t jit_ids[] = {
    JIT_EVENT_LOAD,
    JIT_EVENT_LOAD_VERBOSE,
    JIT_EVENT_STARTED,
    JIT_EVENT_MEMORY,
    JIT_EVENT_INLINED,
    JIT_EVENT_NOT_INLINED_ANSI,
    JIT_EVENT_NOT_INLINED,
    JIT_EVENT_BACKGROUND_START,
    JIT_EVENT_BACKGROUND_STOP,
    0,
};

/* A method being compiled; one begun later by the same thread is over first. */
struct open_method {
    uint64_t method_id, start_ns;
    uint64_t inner_ns; /* compiling others meanwhile */
    uint64_t hot, read_only, allocated;
    uint32_t il_bytes, stack;
    bool has_memory;
};

struct jit_thread {
    struct open_method *open;
    size_t count, capacity;
    bool in_background; /* between the tiering thread's marks */
};

struct jit_reading {
    struct jit_stats *stats;
    struct told_events *told;
    struct module_names modules;
    struct jit_thread *threads; /* by thread of the trace; behind them, by process, for events of none */
    bool told_background;       /* the tiering thread tells when it compiles */
    bool raw_names;
    struct buffer raw, text;
};

static struct jit_thread *thread_of(struct jit_reading *r, const struct told_event *e)
{
    const struct trace *t = r->told->trace;
    uint32_t thread = told_row(r->told, e)->thread;
    bool known = thread && t->threads.rows[thread].process == e->process;
    return &r->threads[known ? thread : t->threads.count + e->process];
}

static void on_started(struct jit_reading *r, const struct told_event *e)
{
    struct jit_thread *thread = thread_of(r, e);
    uint64_t method_id = told_number(r->told, e, "MethodID", 0);
    if (!method_id) {
        r->stats->malformed++;
        return;
    }
    if (thread->count == OPEN_MAX) { /* never over: the oldest was given up */
        memmove(thread->open, thread->open + 1, (OPEN_MAX - 1) * sizeof *thread->open);
        thread->count--;
        r->stats->unfinished++;
    }
    thread->open = mem_grow(thread->open, &thread->capacity, thread->count + 1, sizeof *thread->open);
    thread->open[thread->count++] = (struct open_method){
        .method_id = method_id,
        .start_ns = e->time_ns,
        .il_bytes = (uint32_t)told_number(r->told, e, "MethodILSize", 0),
        .stack = told_row(r->told, e)->stack,
    };
}

static void on_memory(struct jit_reading *r, const struct told_event *e)
{
    struct jit_thread *thread = thread_of(r, e);
    struct open_method *open = thread->count ? &thread->open[thread->count - 1] : NULL;
    if (!open || open->has_memory || open->method_id != told_number(r->told, e, "MethodID", 0))
        return;
    open->has_memory = true;
    open->hot = told_number(r->told, e, "JitHotCodeRequestSize", 0);
    open->read_only = told_number(r->told, e, "JitRODataRequestSize", 0);
    open->allocated = told_number(r->told, e, "AllocatedSizeForJitCode", 0);
}

/* The newest one of this method; those begun after it were given up. */
static bool take_open(struct jit_reading *r, struct jit_thread *thread, uint64_t method_id, uint64_t time_ns,
                      struct open_method *out)
{
    for (size_t i = thread->count; i-- > 0;) {
        if (thread->open[i].method_id != method_id)
            continue;
        r->stats->unfinished += thread->count - 1 - i;
        *out = thread->open[i];
        thread->count = i;
        if (i)
            thread->open[i - 1].inner_ns += time_ns - out->start_ns;
        return true;
    }
    return false;
}

static enum jit_trigger trigger_of(const struct jit_reading *r, const struct jit_thread *thread,
                                   const struct runtime_method_event *m)
{
    enum runtime_tier tier = runtime_method_tier(m);
    if (tier == RUNTIME_TIER_1_OSR)
        return JIT_TRIGGER_OSR;
    if (thread->in_background)
        return JIT_TRIGGER_BACKGROUND;
    if (!r->told_background && (tier == RUNTIME_TIER_1 || tier == RUNTIME_TIER_1_INSTRUMENTED))
        return JIT_TRIGGER_BACKGROUND; /* nobody else compiles these */
    return JIT_TRIGGER_FOREGROUND;
}

static const char *name_of(struct jit_reading *r, const struct runtime_method_event *m)
{
    buffer_clear(&r->raw);
    buffer_clear(&r->text);
    runtime_method_append_name(&r->raw, m);
    if (r->raw_names || !r->raw.size)
        return event_stacks_text(&r->stats->stacks, buffer_span(&r->raw));
    method_name_show(buffer_span(&r->raw), "", &r->text);
    return event_stacks_text(&r->stats->stacks, buffer_span(&r->text));
}

static const char *module_of(struct jit_reading *r, uint32_t process, const struct runtime_method_event *m)
{
    const char *name = module_names_of(&r->modules, process, m->module_id);
    if (!*name)
        name = module_names_of_code(&r->modules, process, m->addr);
    return event_stacks_text(&r->stats->stacks, span_of(name, strlen(name)));
}

static void add_method(struct jit_reading *r, const struct told_event *e,
                       const struct runtime_method_event *m)
{
    struct jit_stats *stats = r->stats;
    struct jit_thread *thread = thread_of(r, e);
    struct open_method open = { 0 };
    bool has_start = take_open(r, thread, m->method_id, e->time_ns, &open);
    uint64_t time_ns = has_start ? e->time_ns - open.start_ns : 0;
    stats->rows = mem_grow(stats->rows, &stats->row_capacity, stats->row_count + 1, sizeof *stats->rows);
    stats->rows[stats->row_count++] = (struct jit_method){
        .process = e->process,
        .thread = told_row(r->told, e)->thread,
        .stack = open.stack ? open.stack : told_row(r->told, e)->stack,
        .name = name_of(r, m),
        .module = module_of(r, e->process, m),
        .tier = (uint8_t)method_code_tier(m),
        .trigger = (uint8_t)trigger_of(r, thread, m),
        .is_dynamic = (m->flags & RUNTIME_METHOD_DYNAMIC) != 0,
        .has_start = has_start,
        .has_memory = open.has_memory,
        .il_bytes = open.il_bytes,
        .native_bytes = m->size_bytes,
        .start_ns = has_start ? open.start_ns : e->time_ns,
        .time_ns = time_ns,
        .own_ns = time_ns > open.inner_ns ? time_ns - open.inner_ns : 0,
        .hot_bytes = open.hot,
        .read_only_bytes = open.read_only,
        .allocated_bytes = open.allocated,
        .method_id = m->method_id,
    };
}

/* The cold part comes right behind the hot one; other threads may have compiled in between. */
static void add_cold(struct jit_reading *r, const struct told_event *e, const struct runtime_method_event *m)
{
    size_t rows = r->stats->row_count;
    for (size_t back = 1; back <= rows && back <= COLD_BEHIND_MAX; back++) {
        struct jit_method *row = &r->stats->rows[rows - back];
        if (row->process != e->process)
            break;
        if (row->method_id == m->method_id) {
            row->native_bytes += m->size_bytes;
            return;
        }
    }
}

static void on_load(struct jit_reading *r, const struct told_event *e)
{
    struct runtime_method_event m;
    uint32_t version = r->told->trace->event_types.rows[told_row(r->told, e)->type].version;
    if (!runtime_method_event_read(told_payload(r->told, e), version, e->id == JIT_EVENT_LOAD_VERBOSE, &m,
                                   NULL)) {
        r->stats->malformed++;
        return;
    }
    if (!(m.flags & RUNTIME_METHOD_JITTED) || m.flags & RUNTIME_METHOD_HELPER)
        return;
    if (runtime_method_is_cold(&m))
        add_cold(r, e, &m);
    else
        add_method(r, e, &m);
}

/* There are some dozens of reasons. */
static void on_not_inlined(struct jit_reading *r, const struct told_event *e)
{
    struct jit_stats *stats = r->stats;
    struct event_value reason;
    stats->not_inlined++;
    if (!told_field(r->told, e, "FailReason", &reason))
        return;
    buffer_clear(&r->text);
    event_value_append_text(&r->text, &reason);
    for (size_t i = 0; i < stats->refusal_count; i++) {
        const char *known = stats->refusals[i].reason;
        if (!span_equals(span_of(known, strlen(known)), buffer_span(&r->text)))
            continue;
        stats->refusals[i].count++;
        return;
    }
    if (stats->refusal_count == REFUSALS_MAX)
        return;
    stats->refusals = mem_grow(stats->refusals, &stats->refusal_capacity, stats->refusal_count + 1,
                               sizeof *stats->refusals);
    stats->refusals[stats->refusal_count++] =
        (struct jit_refusal){ event_stacks_text(&stats->stacks, buffer_span(&r->text)), 1 };
}

static void read_event(struct jit_reading *r, const struct told_event *e)
{
    switch ((enum jit_event_id)e->id) {
    case JIT_EVENT_LOAD:
    case JIT_EVENT_LOAD_VERBOSE:
        on_load(r, e);
        break;
    case JIT_EVENT_STARTED:
        on_started(r, e);
        break;
    case JIT_EVENT_MEMORY:
        on_memory(r, e);
        break;
    case JIT_EVENT_INLINED:
        r->stats->inlined++;
        break;
    case JIT_EVENT_NOT_INLINED_ANSI:
    case JIT_EVENT_NOT_INLINED:
        on_not_inlined(r, e);
        break;
    case JIT_EVENT_BACKGROUND_START:
        thread_of(r, e)->in_background = true;
        break;
    case JIT_EVENT_BACKGROUND_STOP:
        thread_of(r, e)->in_background = false;
        break;
    }
}

static void sum_add(struct jit_sum *sum, const struct jit_method *m)
{
    sum->count++;
    sum->timed += m->has_start;
    sum->time_ns += m->own_ns;
    sum->il_bytes += m->il_bytes;
    sum->native_bytes += m->native_bytes;
}

static int module_compare(const void *a, const void *b)
{
    const struct jit_module *x = a, *y = b;
    if (x->sum.time_ns != y->sum.time_ns)
        return x->sum.time_ns > y->sum.time_ns ? -1 : 1;
    if (x->sum.count != y->sum.count)
        return x->sum.count > y->sum.count ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_module_name(const void *a, const void *b)
{
    const struct jit_method *x = *(const struct jit_method *const *)a,
                            *y = *(const struct jit_method *const *)b;
    int order = strcmp(x->module, y->module);
    return order ? order : (x > y) - (x < y);
}

static int module_name_compare(const void *name, const void *module)
{
    return strcmp(name, ((const struct jit_module *)module)->name);
}

/* The modules are in the order of their names. */
static void mark_precompiled(struct jit_stats *stats, const struct trace *t)
{
    for (size_t i = 1; i < t->functions.count && stats->module_count; i++) {
        const struct trace_function *f = &t->functions.rows[i];
        struct jit_module *module =
            f->kind != CODE_R2R ? NULL
                                : bsearch(trace_string(t, f->module), stats->modules, stats->module_count,
                                          sizeof *stats->modules, module_name_compare);
        if (module)
            module->is_precompiled = true;
    }
}

static void sum_modules(struct jit_stats *stats, const struct trace *t)
{
    AUTO_FREE const struct jit_method **sorted = mem_alloc(stats->row_count + 1, sizeof *sorted);
    for (size_t i = 0; i < stats->row_count; i++)
        sorted[i] = &stats->rows[i];
    if (stats->row_count)
        qsort(sorted, stats->row_count, sizeof *sorted, by_module_name);
    stats->modules = mem_alloc(stats->row_count + 1, sizeof *stats->modules);
    for (size_t i = 0; i < stats->row_count; i++) {
        if (!i || strcmp(sorted[i]->module, sorted[i - 1]->module) != 0)
            stats->modules[stats->module_count++].name = sorted[i]->module;
        struct jit_module *module = &stats->modules[stats->module_count - 1];
        sum_add(&module->sum, sorted[i]);
        module->dynamic += sorted[i]->is_dynamic;
        if (sorted[i]->trigger == JIT_TRIGGER_FOREGROUND && sorted[i]->tier == TIER_0 &&
            !sorted[i]->is_dynamic)
            sum_add(&module->ahead, sorted[i]);
    }
    mark_precompiled(stats, t);
    if (stats->module_count)
        qsort(stats->modules, stats->module_count, sizeof *stats->modules, module_compare);
}

static int refusal_compare(const void *a, const void *b)
{
    const struct jit_refusal *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->reason, y->reason);
}

static void read_all(struct jit_reading *r)
{
    struct told_events *told = r->told;
    size_t threads = told->trace->threads.count + told->trace->processes.count;
    r->threads = mem_alloc(threads, sizeof *r->threads);
    for (size_t i = 0; i < told->count; i++)
        r->told_background |= told->rows[i].id == JIT_EVENT_BACKGROUND_START;
    for (size_t i = 0; i < told->count; i++)
        read_event(r, &told->rows[i]);
    for (size_t i = 0; i < threads; i++) {
        r->stats->unfinished += r->threads[i].count;
        free(r->threads[i].open);
    }
    free(r->threads);
    for (size_t i = 0; i < r->stats->row_count; i++) {
        const struct jit_method *m = &r->stats->rows[i];
        sum_add(&r->stats->all, m);
        sum_add(&r->stats->by_trigger[m->trigger], m);
        sum_add(&r->stats->by_tier[m->tier], m);
    }
    sum_modules(r->stats, r->told->trace);
    if (r->stats->refusal_count)
        qsort(r->stats->refusals, r->stats->refusal_count, sizeof *r->stats->refusals, refusal_compare);
}

bool jit_stats_wants(const char *provider, uint32_t event_id)
{
    enum runtime_event_kind kind = runtime_event_kind_named(provider, event_id);
    return (strcmp(provider, RUNTIME_PROVIDER) == 0 && told_ids_have(jit_ids, event_id)) ||
           kind == RUNTIME_EVENT_MODULE_LOAD || kind == RUNTIME_EVENT_MODULE_EXISTS;
}

void jit_stats_init(struct jit_stats *stats, const struct trace *t, bool raw_names, uint64_t from_ns,
                    uint64_t to_ns)
{
    *stats = (struct jit_stats){ 0 };
    struct told_events told;
    event_stacks_init(&stats->stacks, t, raw_names, EVENT_CUT_NOTHING);
    told_events_init(&told, t,
                     &(struct told_choice){
                         .provider = RUNTIME_PROVIDER, .ids = jit_ids, .from_ns = from_ns, .to_ns = to_ns });
    struct jit_reading r = { .stats = stats, .told = &told, .raw_names = raw_names };
    module_names_init(&r.modules, t);
    buffer_init(&r.raw, NAME_BYTES_MAX);
    buffer_init(&r.text, NAME_BYTES_MAX);
    read_all(&r);
    for (size_t i = 0; i < told.count; i++)
        stats->any |=
            told.rows[i].id != JIT_EVENT_BACKGROUND_START && told.rows[i].id != JIT_EVENT_BACKGROUND_STOP;
    buffer_done(&r.raw);
    buffer_done(&r.text);
    module_names_done(&r.modules);
    told_events_done(&told);
}

void jit_stats_done(struct jit_stats *stats)
{
    event_stacks_done(&stats->stacks);
    free(stats->rows);
    free(stats->modules);
    free(stats->refusals);
}

const char *jit_trigger_name(enum jit_trigger trigger)
{
    static const char *const names[JIT_TRIGGERS] = { "foreground", "osr", "background" };
    return names[trigger];
}
