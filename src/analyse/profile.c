#include "analyse/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/capture_time.h"
#include "analyse/frame_table.h"
#include "analyse/profile_counts.h"
#include "analyse/profile_trim.h"
#include "analyse/stack_filter.h"
#include "base/buffer.h"
#include "base/child_index.h"
#include "base/mem.h"
#include "base/own.h"
#include "trace/facts.h"

enum {
    PROFILE_ARENA_BYTES = 2000u << 20,
    AHEAD = 16, /* stacks come in any order: fetched early, they need not be waited for */
};

struct profile_build {
    const struct trace *t;
    const struct profile_options *options;
    struct profile *p;
    struct frame_table frames;
    struct child_index nodes;
    size_t node_capacity;
    /* by trace stack; where runtimes told of collections: once for each enum gc_time, see stack_use_of() */
    struct stack_use *stacks;
    uint32_t path[TRACE_STACK_DEPTH_MAX]; /* of node_find_folded(), which would have to clear one of its own
                                             each time */
    uint32_t *thread_of;                  /* by trace thread */
    uint32_t *process_of;
    bool *thread_wanted; /* by trace thread; NULL: all are */
    struct runtime_work work;
    struct gc_history gc;
    bool by_gc_time; /* what a stack means depends on it */
    /* by what `stacks` is: enum runtime_work_class of its first sample, WORK_CLASSES: not looked at yet;
     * NULL: no runtime */
    uint8_t *work_of_stack;
    struct stack_filter filter;
    uint64_t *matched; /* by node: the patterns that match one of its path's frames */
    size_t matched_capacity;
};

_Static_assert(sizeof(struct profile_node) == 8 && offsetof(struct profile_node, frame) == 4,
               "a row of child_index");

static uint32_t node_get(struct profile_build *b, uint32_t parent, uint32_t frame)
{
    struct profile *p = b->p;
    uint32_t id = child_index_find(&b->nodes, &p->nodes->parent, p->node_count, parent, frame);
    if (id)
        return id;
    p->nodes = mem_grow(p->nodes, &b->node_capacity, p->node_count + 1, sizeof *p->nodes);
    id = p->node_count++;
    p->nodes[id] = (struct profile_node){ parent, frame };
    child_index_add(&b->nodes, parent, frame, id);
    if (b->filter.count) {
        b->matched = mem_grow(b->matched, &b->matched_capacity, p->node_count, sizeof *b->matched);
        b->matched[id] = b->matched[parent] | b->frames.matched[frame];
    }
    return id;
}

/* A stack that did not reach its thread's root says so as its first frame. */
static uint32_t node_of_root(struct profile_build *b, uint32_t root)
{
    if (root == STACK_WHOLE)
        return 0;
    return node_get(b, 0, frame_table_own(&b->frames, root == STACK_TRUNCATED ? "[truncated]" : "[broken]"));
}

/* Of a location below `parent`: its function and, with lines, what was inlined into it. */
static uint32_t node_of_location(struct profile_build *b, uint32_t parent, uint32_t location)
{
    const struct trace_location *row = &b->t->locations.rows[location];
    uint32_t node = node_get(b, parent, frame_table_location(&b->frames, location));
    for (unsigned i = b->options->lines ? row->inlined_count : 0; i-- > 0;)
        node = node_get(b, node, frame_table_inlined(&b->frames, row->inlined + i, location));
    return node;
}

/* The node of a stack whose runtime frames are folded: those at its end by `work`, others to "[runtime]". */
static uint32_t node_find_folded(struct profile_build *b, uint32_t stack, unsigned work, size_t work_frames)
{
    uint32_t *path = b->path, at = stack;
    size_t depth = 0;
    for (; at >= STACK_ROOTS && depth < TRACE_STACK_DEPTH_MAX; at = b->t->stacks.rows[at].parent)
        path[depth++] = b->t->stacks.rows[at].location;
    uint32_t node = node_of_root(b, at >= STACK_ROOTS ? STACK_TRUNCATED : at ? at : STACK_BROKEN);
    bool was_own = false;
    while (depth > work_frames) {
        uint32_t location = path[--depth];
        bool own = runtime_work_is_own(&b->work, location);
        if (own && !was_own)
            node = node_get(b, node, frame_table_work(&b->frames, WORK_CLASSES));
        else if (!own)
            node = node_of_location(b, node, location);
        was_own = own;
    }
    if (depth)
        node = node_get(b, node, frame_table_work(&b->frames, work));
    return node;
}

/* How many samples row `i` of the trace's stands for. */
static inline uint64_t samples_of(const struct profile_build *b, size_t i)
{
    const struct trace_samples *s = &b->t->samples;
    return b->p->weights_are_samples ? s->weight[i] : s->runs ? s->runs[i].samples : 1;
}

/* A sample of the kind, the stretch of time and the threads that were asked for. */
static bool sample_is_asked(const struct profile_build *b, size_t i)
{
    const struct trace_samples *s = &b->t->samples;
    const struct profile_options *o = b->options;
    uint64_t start_ns = b->p->start_monotonic_ns;
    uint64_t time_ns = s->time_ns[i] > start_ns ? s->time_ns[i] - start_ns : 0;
    return s->kind[i] == o->kind && time_ns >= o->from_ns && (!o->to_ns || time_ns < o->to_ns) &&
           (!b->thread_wanted || b->thread_wanted[s->thread[i]]);
}

/* Which stacks are a sample's, or callers of one. The caller frees. */
static bool *stacks_asked(const struct profile_build *b)
{
    const struct trace *t = b->t;
    bool *asked = mem_alloc(t->stacks.count, sizeof *asked);
    for (size_t i = 0; i < t->samples.count; i++)
        if (sample_is_asked(b, i))
            asked[t->samples.stack[i]] = true;
    for (size_t stack = t->stacks.count; stack-- > STACK_ROOTS;)
        if (asked[stack])
            asked[t->stacks.rows[stack].parent] = true;
    return asked;
}

/*
 * The nodes of all stacks, unless runtime frames are folded. A stack comes after its callers: in that order
 * each is looked at once, and what it needs was looked at lately.
 */
static void nodes_of_stacks(struct profile_build *b)
{
    const struct trace *t = b->t;
    AUTO_FREE bool *asked = stacks_asked(b);
    for (uint32_t root = 0; root < STACK_ROOTS; root++)
        if (asked[root])
            b->stacks[root].node = node_of_root(b, root ? root : STACK_BROKEN);
    for (size_t stack = STACK_ROOTS; stack < t->stacks.count; stack++) {
        const struct trace_stack *row = &t->stacks.rows[stack];
        if (stack + AHEAD < t->stacks.count)
            __builtin_prefetch(&b->stacks[row[AHEAD].parent]);
        if (asked[stack])
            b->stacks[stack].node = node_of_location(b, b->stacks[row->parent].node, row->location);
    }
}

static size_t stack_uses(const struct profile_build *b)
{
    return b->t->stacks.count * (b->by_gc_time ? GC_TIMES : 1);
}

/* The same stack at another enum gc_time is another use of it. */
static inline size_t stack_use_of(struct profile_build *b, size_t i)
{
    const struct trace_samples *s = &b->t->samples;
    if (!b->by_gc_time)
        return s->stack[i];
    return s->stack[i] + b->t->stacks.count * gc_history_at(&b->gc, s->thread[i], s->time_ns[i]);
}

/* The first sample of a use: what the runtime did there, and its node. */
static uint32_t stack_look(struct profile_build *b, size_t use, uint32_t thread)
{
    uint32_t frames = 0, stack = (uint32_t)(use % b->t->stacks.count);
    enum gc_time when = (enum gc_time)(use / b->t->stacks.count);
    enum runtime_work_class work = runtime_work_of(&b->work, stack, thread, when, &frames);
    b->work_of_stack[use] = (uint8_t)work;
    return b->stacks[use].node =
               b->options->group_runtime ? node_find_folded(b, stack, work, frames) : b->stacks[stack].node;
}

static inline uint32_t node_of_sample(struct profile_build *b, size_t use, uint32_t thread)
{
    bool is_new = b->work_of_stack && b->work_of_stack[use] == WORK_CLASSES;
    return is_new ? stack_look(b, use, thread) : b->stacks[use].node;
}

static uint32_t process_get(struct profile_build *b, uint32_t process)
{
    if (b->process_of[process])
        return b->process_of[process];
    struct profile *p = b->p;
    const struct trace_process *row = &b->t->processes.rows[process];
    uint32_t id = p->process_count++;
    p->processes = mem_resize(p->processes, p->process_count, sizeof *p->processes);
    p->processes[id] = (struct profile_process){
        .pid = row->pid,
        .name = frame_table_string(&b->frames, row->name),
        .runtime_version = row->runtime_version ? frame_table_string(&b->frames, row->runtime_version) : NULL,
        .container = row->container ? frame_table_string(&b->frames, row->container) : NULL,
    };
    return b->process_of[process] = id;
}

static uint32_t thread_get(struct profile_build *b, uint32_t thread)
{
    if (b->thread_of[thread])
        return b->thread_of[thread];
    struct profile *p = b->p;
    const struct trace_thread *row = &b->t->threads.rows[thread];
    uint32_t process = process_get(b, row->process);
    uint32_t id = p->thread_count++;
    p->threads = mem_resize(p->threads, p->thread_count, sizeof *p->threads);
    const char *process_name = p->processes[process].name;
    p->threads[id] = (struct profile_thread){
        .pid = p->processes[process].pid,
        .tid = row->tid,
        .name = frame_table_string(&b->frames, row->name),
        .process_name = process_name[0] ? process_name : "[unknown]",
    };
    return b->thread_of[thread] = id;
}

/* A sample's place in its trace, to put them in time order: sources report only nearly so. */
struct sample_order {
    uint64_t time_ns;
    size_t at;
};

static int sample_compare(const void *a, const void *b)
{
    const struct sample_order *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* The order, or NULL when the samples are in it already. The caller frees. */
static struct sample_order *sample_order_of(const struct trace_samples *s)
{
    size_t sorted = 1;
    while (sorted < s->count && s->time_ns[sorted - 1] <= s->time_ns[sorted])
        sorted++;
    if (sorted >= s->count)
        return NULL;
    struct sample_order *order = mem_alloc(s->count, sizeof *order);
    for (size_t i = 0; i < s->count; i++)
        order[i] = (struct sample_order){ s->time_ns[i], i };
    qsort(order, s->count, sizeof *order, sample_compare);
    return order;
}

static void columns_begin(struct profile *p, size_t count, bool in_runs)
{
    p->sample_node = mem_alloc(count, sizeof *p->sample_node);
    p->sample_thread = mem_alloc(count, sizeof *p->sample_thread);
    p->sample_time_ns = mem_alloc(count, sizeof *p->sample_time_ns);
    p->sample_weight = mem_alloc(count, sizeof *p->sample_weight);
    p->sample_cpu = mem_alloc(count, sizeof *p->sample_cpu);
    if (in_runs)
        p->sample_repeats = mem_alloc(count, sizeof *p->sample_repeats);
}

/* Takes sample `i` of the trace, which is that use of its stack. */
static void profile_add_sample(struct profile_build *b, size_t i, size_t use, uint32_t node, uint64_t time_ns)
{
    const struct trace_samples *s = &b->t->samples;
    struct profile *p = b->p;
    uint64_t weight = b->options->weights ? b->options->weights[i] : s->weight[i];
    uint64_t samples = samples_of(b, i);
    uint32_t thread = thread_get(b, s->thread[i]);
    b->stacks[use].samples += (uint32_t)samples;
    b->stacks[use].weight += weight;
    p->threads[thread].samples += samples;
    p->threads[thread].weight += weight;
    p->counts.samples += samples;
    p->counts.weight += weight;
    if (b->work_of_stack)
        p->counts.work[b->work_of_stack[use]] += weight;
    size_t at = p->sample_count++;
    if (b->options->tree_only)
        return;
    p->sample_node[at] = node;
    p->sample_thread[at] = thread;
    p->sample_time_ns[at] = time_ns;
    p->sample_weight[at] = weight;
    p->sample_cpu[at] = s->cpu[i];
    if (p->sample_repeats)
        p->sample_repeats[at] = s->runs[i].samples;
}

static void profile_add_samples(struct profile_build *b)
{
    const struct trace_samples *s = &b->t->samples;
    const struct profile_options *o = b->options;
    struct profile *p = b->p;
    if (!o->tree_only)
        columns_begin(p, s->count, s->runs != NULL);
    AUTO_FREE struct sample_order *order = o->tree_only ? NULL : sample_order_of(s);
    if (!o->group_runtime || !b->work.has_runtime)
        nodes_of_stacks(b);
    for (size_t k = 0; k < s->count; k++) {
        size_t i = order ? order[k].at : k;
        if (k + AHEAD < s->count)
            __builtin_prefetch(&b->stacks[s->stack[order ? order[k + AHEAD].at : k + AHEAD]], 1);
        uint64_t time_ns = s->time_ns[i] > p->start_monotonic_ns ? s->time_ns[i] - p->start_monotonic_ns : 0;
        uint64_t samples = samples_of(b, i);
        p->counts.captured += samples;
        p->counts.recorded += s->kind[i] == o->kind ? samples : 0;
        if (!sample_is_asked(b, i))
            continue;
        size_t use = stack_use_of(b, i);
        uint32_t node = node_of_sample(b, use, s->thread[i]);
        if (!b->filter.count || stack_filter_wants(&b->filter, b->matched[node]))
            profile_add_sample(b, i, use, node, time_ns);
    }
}

/* All uses of a stack become its first; what of the collector's work is uncertain is counted before. */
static void profile_join_uses(struct profile_build *b)
{
    size_t count = b->t->stacks.count;
    for (size_t i = 0; b->work_of_stack && i < count; i++)
        if (b->work_of_stack[i] == WORK_GC) /* GC_TIME_UNTOLD */
            b->p->counts.gc_untold += b->stacks[i].weight;
    for (size_t use = count; use < stack_uses(b); use++) {
        b->stacks[use % count].samples += b->stacks[use].samples;
        b->stacks[use % count].weight += b->stacks[use].weight;
    }
}

static void profile_add_weights(struct profile_build *b)
{
    struct profile *p = b->p;
    p->self = mem_alloc(p->node_count, sizeof *p->self);
    p->total = mem_alloc(p->node_count, sizeof *p->total);
    for (size_t i = 0; i < stack_uses(b); i++)
        if (b->stacks[i].weight)
            p->self[b->stacks[i].node] += b->stacks[i].weight;
    memcpy(p->total, p->self, p->node_count * sizeof *p->total);
    for (uint32_t node = p->node_count; node-- > 1;)
        p->total[p->nodes[node].parent] += p->total[node];
}

/* One of the forms in which a function ran, by one of its locations. */
struct frame_form {
    uint32_t frame, location;
    uint32_t form; /* kind and tier */
    uint64_t weight;
};

static int compare_forms(const void *a, const void *b)
{
    const struct frame_form *x = a, *y = b;
    if (x->frame != y->frame)
        return x->frame < y->frame ? -1 : 1;
    if (x->form != y->form)
        return x->form < y->form ? -1 : 1;
    return (x->location > y->location) - (x->location < y->location);
}

/* The locations that took time themselves, as forms of their functions. The caller frees. */
static struct frame_form *profile_list_forms(const struct profile_build *b, size_t *out_count)
{
    const struct trace *t = b->t;
    uint64_t *leaf = mem_alloc(t->locations.count, sizeof *leaf);
    struct frame_form *forms = mem_alloc(t->locations.count, sizeof *forms);
    size_t count = 0;
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++)
        leaf[t->stacks.rows[i].location] += b->stacks[i].weight;
    for (uint32_t i = 1; i < t->locations.count; i++) {
        uint32_t frame = b->frames.of_location[i];
        const struct trace_location *row = &t->locations.rows[i];
        if (frame && row->function && leaf[i])
            forms[count++] = (struct frame_form){
                frame, i, (uint32_t)t->functions.rows[row->function].kind << 8 | row->tier, leaf[i]
            };
    }
    free(leaf);
    if (count)
        qsort(forms, count, sizeof *forms, compare_forms);
    *out_count = count;
    return forms;
}

/* A function that ran in several forms is shown as the one that took most of the time. */
static void profile_choose_kinds(struct profile_build *b)
{
    const struct trace *t = b->t;
    uint64_t best = 0;
    size_t count;
    struct frame_form *forms = profile_list_forms(b, &count);
    for (size_t i = 0, to; i < count; i = to) {
        uint64_t weight = 0;
        for (to = i; to < count && forms[to].frame == forms[i].frame && forms[to].form == forms[i].form; to++)
            weight += forms[to].weight;
        if (i == 0 || forms[i].frame != forms[i - 1].frame)
            best = 0;
        if (weight <= best)
            continue;
        best = weight;
        const struct trace_location *row = &t->locations.rows[forms[i].location];
        struct profile_frame *frame = &b->p->frames[forms[i].frame];
        frame->kind = t->functions.rows[row->function].kind;
        frame->tier = row->tier;
        frame->resolver = row->resolver;
    }
    free(forms);
}

/* By process: the weight of its samples. The caller frees. */
static uint64_t *process_weights(const struct profile_build *b)
{
    uint64_t *weights = mem_alloc(b->p->process_count, sizeof *weights);
    for (size_t i = 1; i < b->t->threads.count; i++)
        if (b->thread_of[i])
            weights[b->process_of[b->t->threads.rows[i].process]] += b->p->threads[b->thread_of[i]].weight;
    return weights;
}

static void put_process(const struct profile_process *process, struct buffer *out)
{
    if (process->pid)
        buffer_format(out, process->name[0] ? "%.200s (%u)" : "%.200sprocess %u", process->name,
                      process->pid);
    else
        buffer_format(out, "%.200s", process->name[0] ? process->name : "stacks of an unknown process");
}

/* The heaviest processes, as many as a line has room for. */
static void profile_title(struct profile_build *b)
{
    enum { NAMED = 3 };
    struct profile *p = b->p;
    AUTO_FREE uint64_t *weights = process_weights(b);
    AUTO_FREE bool *named = mem_alloc(p->process_count, sizeof *named);
    struct buffer title;
    buffer_init(&title, 4096);
    for (unsigned count = 0; count < NAMED && count + 1 < p->process_count; count++) {
        uint32_t heaviest = 0;
        for (uint32_t i = 1; i < p->process_count; i++)
            if (!named[i] && (!heaviest || weights[i] > weights[heaviest]))
                heaviest = i;
        named[heaviest] = true;
        buffer_string(&title, count ? ", " : "");
        put_process(&p->processes[heaviest], &title);
    }
    if (p->process_count > NAMED + 1)
        buffer_format(&title, " and %u more", p->process_count - 1 - NAMED);
    p->title = frame_table_text(&b->frames, buffer_span(&title));
    buffer_done(&title);
}

static void profile_describe(struct profile_build *b)
{
    const struct trace *t = b->t;
    struct profile *p = b->p;
    const char *unit = trace_fact_value(t, FACT_UNIT), *event = trace_fact_value(t, FACT_EVENT);
    const char *found = trace_fact_value(t, FACT_FRAMES_FOUND);
    uint64_t rate_hz = 0;
    trace_fact_number(t, FACT_RATE_HZ, &rate_hz);
    if (b->options->kind == SAMPLE_EVENT) {
        found = trace_fact_value(t, FACT_COUNTED_FRAMES_FOUND);
        event = trace_fact_value(t, FACT_COUNTED_EVENT);
        unit = "count";
        rate_hz = 0;
    }
    if (b->options->kind == SAMPLE_WALL) {
        found = NULL; /* the runtime walked them */
        event = trace_fact_value(t, FACT_WALL_EVENT);
        unit = "ns";
        rate_hz = 0;
    }
    p->is_wall = b->options->kind == SAMPLE_WALL;
    p->rate_hz = (double)rate_hz;
    p->weight_unit = unit ? frame_table_text(&b->frames, span_of(unit, strlen(unit))) : "samples";
    p->frames_found = found ? frame_table_text(&b->frames, span_of(found, strlen(found))) : NULL;
    p->event = event ? frame_table_text(&b->frames, span_of(event, strlen(event))) : "samples";
    profile_title(b);
}

static void profile_sum_collections(struct profile_build *b)
{
    const struct profile *p = b->p;
    uint64_t from_ns = b->options->from_ns, to_ns = b->options->to_ns;
    if (!to_ns || to_ns > p->duration_ns)
        to_ns = p->duration_ns;
    b->p->counts.gc = gc_history_summary(&b->gc, &b->options->who, p->start_monotonic_ns + from_ns,
                                         p->start_monotonic_ns + to_ns);
}

/* What was told in the time that is shown. */
static void profile_add_timeline(struct profile_build *b)
{
    const struct profile_options *o = b->options;
    uint64_t start_ns = b->p->start_monotonic_ns;
    if (o->timeline)
        timeline_init(&b->p->timeline, b->t, &o->who, start_ns, start_ns + o->from_ns,
                      o->to_ns ? start_ns + o->to_ns : 0);
}

static void build_done(struct profile_build *b)
{
    stack_filter_done(&b->filter);
    runtime_work_done(&b->work);
    gc_history_done(&b->gc);
    free(b->work_of_stack);
    frame_table_done(&b->frames);
    child_index_done(&b->nodes);
    free(b->stacks);
    free(b->thread_of);
    free(b->process_of);
    free(b->thread_wanted);
    free(b->matched);
}

static void build_begin(struct profile_build *b)
{
    const struct trace *t = b->t;
    struct profile *p = b->p;
    arena_init(&p->arena, PROFILE_ARENA_BYTES);
    frame_table_init(&b->frames, t, b->options, &b->filter, p);
    runtime_work_init(&b->work, t);
    if (b->options->kind == SAMPLE_WALL)
        b->work.has_runtime = false; /* a sampler of managed frames does not see the runtime at work */
    gc_history_init(&b->gc, t);
    b->by_gc_time = b->work.has_runtime && b->gc.told;
    b->stacks = mem_alloc(stack_uses(b), sizeof *b->stacks);
    if (b->work.has_runtime)
        b->work_of_stack = memset(mem_alloc(stack_uses(b), 1), WORK_CLASSES, stack_uses(b));
    b->p->counts.work_known = b->work.has_runtime;
    b->thread_of = mem_alloc(t->threads.count, sizeof *b->thread_of);
    b->process_of = mem_alloc(t->processes.count, sizeof *b->process_of);
    b->thread_wanted = thread_filter_threads(&b->options->who, t);
    p->nodes = mem_grow(NULL, &b->node_capacity, 64, sizeof *p->nodes);
    p->nodes[0] = (struct profile_node){ 0 };
    if (b->filter.count) {
        b->matched = mem_grow(NULL, &b->matched_capacity, 1, sizeof *b->matched);
        b->matched[0] = 0;
    }
    p->threads = mem_alloc(1, sizeof *p->threads);
    p->processes = mem_alloc(1, sizeof *p->processes);
    p->node_count = p->thread_count = p->process_count = 1;
    const struct capture_time time = capture_time_of(t);
    p->start_monotonic_ns = time.start_ns;
    p->start_realtime_ns = time.realtime_ns;
    p->duration_ns = time.duration_ns;
    const char *unit = trace_fact_value(t, FACT_UNIT);
    p->by_line = b->options->lines;
    p->weights_are_samples = b->options->kind == SAMPLE_CPU && unit && strcmp(unit, "samples") == 0;
}

bool profile_build(const struct trace *t, const struct profile_options *options, struct profile **out,
                   struct error *err)
{
    struct profile_build b = { .t = t, .options = options };
    if (!stack_filter_init(&b.filter, options->include, options->exclude, err))
        return false;
    b.p = mem_alloc(1, sizeof *b.p);
    build_begin(&b);
    profile_add_samples(&b);
    profile_add_weights(&b);
    profile_join_uses(&b);
    profile_choose_kinds(&b);
    profile_counts_stacks(&b.p->counts, t, b.stacks, b.p->weights_are_samples);
    profile_counts_losses(&b.p->counts, t);
    profile_describe(&b);
    profile_sum_collections(&b);
    profile_add_timeline(&b);
    if (b.filter.count)
        profile_trim(b.p);
    build_done(&b);
    if (b.frames.is_full) {
        profile_free(b.p);
        return error_set(err, ERROR_LIMIT, "the names in the capture take more than %u MiB",
                         (unsigned)PROFILE_ARENA_BYTES >> 20);
    }
    *out = b.p;
    return true;
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    arena_done(&p->arena);
    timeline_done(&p->timeline);
    free(p->frames);
    free(p->nodes);
    free(p->self);
    free(p->total);
    free(p->sample_node);
    free(p->sample_thread);
    free(p->sample_time_ns);
    free(p->sample_weight);
    free(p->sample_cpu);
    free(p->sample_repeats);
    free(p->threads);
    free(p->processes);
    free(p);
}
