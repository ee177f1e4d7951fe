#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/call_neighbours.h"
#include "analyse/hot.h"
#include "base/own.h"
#include "trace/builder.h"
#include "trace/facts.h"

/* A trace of named stacks: samples of weight 10, one every 100 ns from time 1000 on. */
static void add(struct trace_builder *b, uint64_t at, const char *const *names, size_t count, size_t samples)
{
    uint32_t functions[8];
    for (size_t i = 0; i < count; i++) {
        struct trace_function f = { .name = trace_add_string(&b->trace, names[i]),
                                    .module = trace_add_string(&b->trace, "m"),
                                    .kind = CODE_NATIVE };
        functions[i] = trace_builder_function(b, &f);
    }
    uint32_t stack = trace_builder_named_stack(b, functions, count);
    uint32_t thread = trace_builder_thread(b, 1, 2, 0);
    for (size_t i = 0; i < samples; i++)
        trace_push_sample(&b->trace.samples, 1000 + at + i * 100, thread, stack, 10, SAMPLE_CPU, 0);
}

static void made_trace(struct trace_builder *b)
{
    static const char *const leaf[] = { "main", "f", "g" }, *const again[] = { "main", "f", "f", "h" },
                             *const top[] = { "main" };
    trace_builder_init(b, 64);
    trace_set_fact(&b->trace, FACT_STARTED_MONOTONIC_NS, "1000");
    trace_set_fact(&b->trace, FACT_UNIT, "ns");
    b->trace.symbolized = true;
    add(b, 0, leaf, 3, 4);
    add(b, 400, again, 4, 3);
    add(b, 700, top, 1, 3);
}

static const struct hot_row *row_named(const struct hot_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    fail_msg("no row '%s'", name);
    return NULL;
}

static struct profile *built(struct trace_builder *b, const struct profile_options *options)
{
    struct profile *p;
    struct error err;
    if (!profile_build(&b->trace, options, &p, &err))
        fail_msg("%s", err.what);
    return p;
}

static void test_self_and_total(void **state)
{
    (void)state;
    struct trace_builder b;
    made_trace(&b);
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    struct hot_table table;
    hot_table_build(p, HOT_BY_FUNCTION, false, 0, &table);
    assert_int_equal(p->counts.samples, 10);
    assert_int_equal(p->counts.weight, 100);
    uint64_t self = 0;
    for (size_t i = 0; i < table.count; i++)
        self += table.rows[i].self;
    assert_int_equal(self, 100);
    assert_int_equal(row_named(&table, "main")->total, 100);
    assert_int_equal(row_named(&table, "f")->total, 70); /* a recursive sample counts once */
    assert_int_equal(row_named(&table, "g")->self, 40);
    assert_string_equal(table.rows[0].name, "g");
    /* equal self: by total, so main before h */
    assert_string_equal(table.rows[1].name, "main");
    hot_table_done(&table);
    profile_free(p);
    trace_builder_done(&b);
}

/* A row that stands for several looks counts as that many, and belongs to all the time that it tells of. */
static void test_runs(void **state)
{
    (void)state;
    static const char *const stack[] = { "main", "f" };
    struct trace_builder b;
    trace_builder_init(&b, 64);
    trace_set_fact(&b.trace, FACT_STARTED_MONOTONIC_NS, "1000");
    trace_set_fact_number(&b.trace, FACT_DURATION_NS, HOT_WHEN_BUCKETS * 100);
    b.trace.symbolized = true;
    trace_samples_in_runs(&b.trace.samples);
    add(&b, 0, stack, 2, 2);
    struct trace_samples *s = &b.trace.samples;
    for (size_t i = 0; i < s->count; i++)
        s->kind[i] = SAMPLE_WALL;
    s->time_ns[0] = 1030;
    s->weight[0] = 100;
    s->runs[0].samples = 4;
    struct profile *p = built(&b, &(struct profile_options){ .kind = SAMPLE_WALL });
    assert_int_equal(p->counts.samples, 5);
    assert_int_equal(p->counts.whole, 5);
    assert_int_equal(p->threads[1].samples, 5);
    assert_int_equal(profile_samples_at(p, 0), 4);
    struct hot_table table;
    hot_table_build(p, HOT_BY_FUNCTION, false, 0, &table);
    const struct hot_row *f = row_named(&table, "f");
    assert_int_equal(f->samples, 5);
    assert_int_equal(f->self, 110);
    assert_int_equal(f->when[0], 70);
    assert_int_equal(f->when[1], 30 + 10);
    hot_table_done(&table);
    profile_free(p);
    trace_builder_done(&b);
}

static void test_filters(void **state)
{
    (void)state;
    struct trace_builder b;
    made_trace(&b);
    const char *const with_f[] = { "^f$", NULL }, *const without_h[] = { "^h$", NULL };
    struct profile *p = built(&b, &(struct profile_options){ .include = with_f });
    assert_int_equal(p->counts.samples, 7);
    profile_free(p);
    p = built(&b, &(struct profile_options){ .include = with_f, .exclude = without_h });
    assert_int_equal(p->counts.samples, 4);
    profile_free(p);
    p = built(&b, &(struct profile_options){ .from_ns = 400, .to_ns = 700 });
    assert_int_equal(p->counts.samples, 3);
    profile_free(p);
    b.trace.processes.rows[trace_builder_process(&b, 1)].name = trace_add_string(&b.trace, "Server");
    p = built(&b, &(struct profile_options){ .who = { .process = "ser*" } });
    assert_int_equal(p->counts.samples, 10);
    assert_int_equal(p->counts.recorded, 10);
    profile_free(p);
    p = built(&b, &(struct profile_options){ .who = { .process = "1", .thread = "2" } });
    assert_int_equal(p->counts.samples, 10);
    profile_free(p);
    p = built(&b, &(struct profile_options){ .who = { .process = "1", .thread = "1" } });
    assert_int_equal(p->counts.samples, 0);
    profile_free(p);
    p = built(&b, &(struct profile_options){ .who = { .process = "2" } });
    assert_int_equal(p->counts.samples, 0);
    assert_int_equal(p->counts.recorded, 10);
    profile_free(p);
    const char *const broken[] = { "(", NULL };
    struct error err;
    assert_false(profile_build(&b.trace, &(struct profile_options){ .include = broken }, &p, &err));
    assert_int_equal(err.kind, ERROR_USAGE);
    trace_builder_done(&b);
}

/* What a filter leaves out is in no row and no node, in a profile of the tree only, too. */
static void test_filtered_away(void **state)
{
    (void)state;
    struct trace_builder b;
    made_trace(&b);
    const char *const with_f[] = { "^f$", NULL }, *const without_h[] = { "^h$", NULL };
    for (int tree_only = 0; tree_only < 2; tree_only++) {
        struct profile *p =
            built(&b, &(struct profile_options){
                          .include = with_f, .exclude = without_h, .tree_only = tree_only == 1 });
        struct hot_table table;
        hot_table_build(p, HOT_BY_FUNCTION, false, 0, &table);
        assert_int_equal(table.count, 3); /* main, f, g */
        for (size_t i = 0; i < table.count; i++) {
            assert_string_not_equal(table.rows[i].name, "h");
            assert_int_not_equal(table.rows[i].total, 0);
        }
        assert_int_equal(row_named(&table, "main")->total, 40);
        for (uint32_t node = 1; node < p->node_count; node++)
            assert_int_not_equal(p->total[node], 0);
        for (size_t i = 0; p->sample_node && i < p->sample_count; i++)
            assert_string_not_equal(p->frames[p->nodes[p->sample_node[i]].frame].name, "h");
        hot_table_done(&table);
        profile_free(p);
    }
    trace_builder_done(&b);
}

/* A sample counts once for each neighbour that it has anywhere; f calls itself in 30 of 70. */
static void test_neighbours(void **state)
{
    (void)state;
    struct trace_builder b;
    made_trace(&b);
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    struct call_neighbours n;
    assert_true(call_neighbours_build(p, "f", true, &n));
    assert_int_equal(n.focus.total, 70);
    assert_int_equal(n.focus.self, 0);
    assert_int_equal(n.table.count, 2);
    assert_int_equal(row_named(&n.table, "main")->total, 70);
    assert_int_equal(row_named(&n.table, "f")->total, 30);
    assert_int_equal(row_named(&n.table, "f")->samples, 3);
    call_neighbours_done(&n);
    assert_true(call_neighbours_build(p, "f", false, &n));
    assert_int_equal(n.table.count, 3);
    assert_int_equal(row_named(&n.table, "g")->total, 40);
    assert_int_equal(row_named(&n.table, "h")->total, 30);
    assert_int_equal(row_named(&n.table, "f")->total, 30);
    assert_string_equal(n.table.rows[0].name, "g");
    call_neighbours_done(&n);
    assert_true(call_neighbours_build(p, "main", true, &n));
    assert_int_equal(n.focus.self, 30);
    assert_int_equal(n.focus.samples, 3); /* as in the row of the whole table */
    assert_int_equal(row_named(&n.table, "[root]")->total, 100);
    call_neighbours_done(&n);
    assert_false(call_neighbours_build(p, "nobody", true, &n));
    profile_free(p);
    trace_builder_done(&b);
}

/* Which functions are meant: an exact name wins; of several that contain a part all count, each sample once.
 */
static void test_neighbours_matched(void **state)
{
    (void)state;
    static const char *const both[] = { "Main", "HotAlpha", "HotBeta" }, *const one[] = { "Main", "HotBeta" },
                             *const longer[] = { "Main", "HotBeta2", "Work" };
    struct trace_builder b;
    trace_builder_init(&b, 64);
    trace_set_fact(&b.trace, FACT_UNIT, "ns");
    b.trace.symbolized = true;
    add(&b, 0, both, 3, 4);
    add(&b, 400, one, 2, 2);
    add(&b, 600, longer, 3, 1);
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    struct call_neighbours n;
    assert_true(call_neighbours_build(p, "HotBeta", true, &n));
    assert_true(n.exact);
    assert_int_equal(n.function_count, 1);
    assert_int_equal(n.focus.total, 60);
    call_neighbours_done(&n);
    assert_true(call_neighbours_build(p, "Alph", true, &n));
    assert_int_equal(n.function_count, 1);
    assert_string_equal(n.focus.name, "HotAlpha");
    assert_string_equal(n.focus.module, "m");
    call_neighbours_done(&n);
    assert_true(call_neighbours_build(p, "Hot", true, &n));
    assert_int_equal(n.function_count, 3);
    assert_null(n.focus.name);
    assert_string_equal(n.functions[0].name, "HotBeta");
    assert_int_equal(n.functions[0].total, 60);
    assert_string_equal(n.functions[1].name, "HotAlpha");
    assert_int_equal(n.focus.total, 70);
    assert_int_equal(row_named(&n.table, "Main")->total, 70);
    assert_int_equal(row_named(&n.table, "HotAlpha")->total, 40);
    call_neighbours_done(&n);
    profile_free(p);
    trace_builder_done(&b);
}

static void test_when(void **state)
{
    (void)state;
    struct hot_row row = { .when = { 0, 1, 5, 100, 1000, 9900, 10000, 35900, 36000 } };
    char text[HOT_WHEN_BUCKETS + 1];
    hot_when_text(&row, 10000, text);
    assert_memory_equal(text, "_..01", 5);
    assert_int_equal(text[5], '9');
    assert_int_equal(text[6], 'A');
    assert_int_equal(text[7], 'Z');
    assert_int_equal(text[8], '*');
    assert_int_equal(strlen(text), HOT_WHEN_BUCKETS);
}

/* One CPU's time where time is weighed, else what the busiest part has. */
static void test_when_full(void **state)
{
    (void)state;
    static const uint64_t times_ns[] = { 0, 100, 3000, 3010, 3020, 3199 };
    struct profile p = { .weight_unit = "ns",
                         .duration_ns = 100 * HOT_WHEN_BUCKETS,
                         .sample_count = ARRAY_LEN(times_ns) };
    uint64_t weights[ARRAY_LEN(times_ns)];
    uint64_t times[ARRAY_LEN(times_ns)];
    for (size_t i = 0; i < ARRAY_LEN(times_ns); i++) {
        weights[i] = 1;
        times[i] = times_ns[i];
    }
    p.sample_time_ns = times;
    p.sample_weight = weights;
    assert_int_equal((int)hot_when_full(&p), 100);
    p.weight_unit = "count";
    assert_int_equal((int)hot_when_full(&p), 3);
    p.sample_count = 0;
    assert_int_equal((int)hot_when_full(&p), 0);
}

/* Samples out of order in the trace are in order in the profile. */
static void test_time_order(void **state)
{
    (void)state;
    struct trace_builder b;
    made_trace(&b);
    uint32_t thread = trace_builder_thread(&b, 1, 2, 0);
    trace_push_sample(&b.trace.samples, 1001, thread, STACK_WHOLE, 10, SAMPLE_CPU, 0);
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    for (size_t i = 1; i < p->sample_count; i++)
        assert_true(p->sample_time_ns[i - 1] <= p->sample_time_ns[i]);
    assert_int_equal(p->sample_time_ns[1], 1);
    profile_free(p);
    trace_builder_done(&b);
}

/* As from a file of folded stacks: the weight says how many samples it was, and there are no modules. */
static void folded_trace(struct trace_builder *b, const char *module, uint64_t weight)
{
    static const char *const names[] = { "a", "f", "f" };
    uint32_t functions[ARRAY_LEN(names)];
    trace_builder_init(b, 64);
    trace_set_fact(&b->trace, FACT_UNIT, "samples");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        functions[i] = trace_builder_function(
            b, &(struct trace_function){ .name = trace_add_string(&b->trace, names[i]),
                                         .module = trace_add_string(&b->trace, module) });
    uint32_t stack = trace_builder_named_stack(b, functions, ARRAY_LEN(names));
    uint32_t thread = trace_builder_thread(b, 1, 2, 0);
    trace_push_sample(&b->trace.samples, 0, thread, stack, weight, SAMPLE_CPU, 0);
}

/* Counts of microseconds go beyond 32 bits. */
static void test_large_counts(void **state)
{
    (void)state;
    struct trace_builder b;
    folded_trace(&b, "", UINT64_C(1) << 32);
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    assert_int_equal(p->counts.samples, UINT64_C(1) << 32);
    assert_int_equal(p->counts.whole, UINT64_C(1) << 32);
    assert_int_equal(p->total[0], UINT64_C(1) << 32);
    profile_free(p);
    trace_builder_done(&b);
}

static void test_recursion_is_its_own_callee(void **state)
{
    (void)state;
    struct trace_builder b;
    folded_trace(&b, "", 10);
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    struct call_neighbours n;
    assert_true(call_neighbours_build(p, "f", false, &n));
    assert_int_equal(n.table.count, 2);
    assert_int_equal(n.focus.total, 10);
    assert_int_equal(row_named(&n.table, "f")->total, 10);
    assert_int_equal(row_named(&n.table, "[self]")->total, 10);
    call_neighbours_done(&n);
    profile_free(p);
    trace_builder_done(&b);
}

/* Calls of f at two lines, and one of which only the method's line is known. */
/* Samples of a managed function at one more of its addresses. */
static void add_managed(struct trace_builder *b, const char *name, enum code_tier tier, size_t samples)
{
    struct trace_function wanted = { .name = trace_add_string(&b->trace, name),
                                     .module = trace_add_string(&b->trace, "m"),
                                     .kind = CODE_JIT };
    uint32_t function = trace_builder_function(b, &wanted), thread = trace_builder_thread(b, 1, 2, 0);
    uint32_t location = trace_push(&b->trace.locations), stack = trace_push(&b->trace.stacks);
    b->trace.locations.rows[location] =
        (struct trace_location){ .function = function, .tier = (uint8_t)tier };
    b->trace.stacks.rows[stack] = (struct trace_stack){ STACK_WHOLE, location };
    for (size_t i = 0; i < samples; i++)
        trace_push_sample(&b->trace.samples, 1000 + i, thread, stack, 1, SAMPLE_CPU, 0);
}

/* Not of its hottest address: its other form has more of them. */
static void test_tier_that_took_most(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    b.trace.symbolized = true;
    add_managed(&b, "App.P::Hot()", TIER_OSR, 4);
    for (int i = 0; i < 5; i++)
        add_managed(&b, "App.P::Hot()", TIER_1, 3);
    struct hot_table table;
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    hot_table_build(p, HOT_BY_FUNCTION, false, 0, &table);
    const struct hot_row *row = row_named(&table, "App.P.Hot");
    assert_int_equal(row->self, 19);
    assert_int_equal(row->tier, TIER_1);
    hot_table_done(&table);
    profile_free(p);
    trace_builder_done(&b);
}

static void test_by_type(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    b.trace.symbolized = true;
    add_managed(&b, "App.P::Hot()", TIER_1, 1);
    add_managed(&b, "App.P::.ctor()", TIER_1, 2);
    add_managed(&b, "App.P::get_Item(int32)", TIER_1, 3);
    add_managed(&b, "App.P::<Main>g__Add|0_0(int32)", TIER_1, 4);
    add_managed(&b, "App.Q.Shown", TIER_1, 5); /* as another tool wrote them */
    add_managed(&b, "App.Q..ctor", TIER_1, 6);
    add_managed(&b, "App.\xe2\x80\xaeR::M()", TIER_1, 7); /* shown longer than it is */
    struct hot_table table;
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    hot_table_build(p, HOT_BY_TYPE, false, 0, &table);
    assert_int_equal(table.count, 3);
    assert_int_equal(row_named(&table, "App.\\u{202e}R")->self, 7);
    assert_int_equal(row_named(&table, "App.P")->self, 10);
    assert_int_equal(row_named(&table, "App.Q")->self, 11);
    hot_table_done(&table);
    profile_free(p);
    trace_builder_done(&b);
}

/* A program's executable and its assembly have the same name. */
static void test_kind_of_module(void **state)
{
    static const char *const native[] = { "main" };
    (void)state;
    for (int mixed = 0; mixed < 2; mixed++) {
        struct trace_builder b;
        struct hot_table table;
        trace_builder_init(&b, 64);
        b.trace.symbolized = true;
        if (mixed)
            add(&b, 0, native, 1, 1);
        add_managed(&b, "App.P::Hot()", TIER_1, 1);
        add_managed(&b, "App.P::Cold()", TIER_1, 1);
        struct profile *p = built(&b, &(struct profile_options){ 0 });
        hot_table_build(p, HOT_BY_MODULE, false, 0, &table);
        assert_int_equal(table.count, 1);
        assert_int_equal(table.rows[0].kind, mixed ? CODE_UNKNOWN : CODE_JIT);
        hot_table_done(&table);
        profile_free(p);
        trace_builder_done(&b);
    }
}

static void test_lines(void **state)
{
    (void)state;
    static const char *const names[] = { "main", "f" };
    static const struct {
        uint32_t line;
        bool of_method;
        size_t samples;
    } calls[] = { { 12, false, 3 }, { 14, false, 2 }, { 14, false, 1 }, { 10, true, 1 }, { 0, false, 1 } };
    struct trace_builder b;
    trace_builder_init(&b, 64);
    b.trace.symbolized = true;
    uint32_t file = trace_add_string(&b.trace, "/src/f.cs");
    uint32_t thread = trace_builder_thread(&b, 1, 2, 0);
    add(&b, 0, names, 2, 0);
    uint32_t outer = b.trace.stacks.rows[b.trace.stacks.count - 1].parent;
    struct trace_location f = b.trace.locations.rows[b.trace.stacks.rows[b.trace.stacks.count - 1].location];
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        uint32_t location = trace_push(&b.trace.locations), stack = trace_push(&b.trace.stacks);
        b.trace.locations.rows[location] = f;
        b.trace.locations.rows[location].file = calls[i].line ? file : 0;
        b.trace.locations.rows[location].line = calls[i].line;
        b.trace.locations.rows[location].line_of_method = calls[i].of_method;
        b.trace.stacks.rows[stack] = (struct trace_stack){ outer, location };
        for (size_t n = 0; n < calls[i].samples; n++)
            trace_push_sample(&b.trace.samples, 1000 + n, thread, stack, 1, SAMPLE_CPU, 0);
    }
    struct hot_table table;
    struct profile *p = built(&b, &(struct profile_options){ .lines = true });
    hot_table_build(p, HOT_BY_FUNCTION, false, 0, &table);
    static const struct hot_row wanted[] = { { .line = 12, .self = 3 },
                                             { .line = 14, .self = 3 },
                                             { .line = 0, .self = 1 },
                                             { .line = 10, .self = 1, .line_of_method = true } };
    assert_int_equal(table.count, ARRAY_LEN(wanted) + 1); /* and main */
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_string_equal(table.rows[i].name, "f");
        assert_int_equal(table.rows[i].line, wanted[i].line);
        assert_int_equal(table.rows[i].self, wanted[i].self);
        assert_int_equal(table.rows[i].line_of_method, wanted[i].line_of_method);
        assert_int_equal(table.rows[i].file != NULL, wanted[i].line != 0);
    }
    assert_string_equal(table.rows[0].file, "/src/f.cs");
    hot_table_done(&table);
    profile_free(p);
    /* a whole function has the first line that ran */
    p = built(&b, &(struct profile_options){ 0 });
    hot_table_build(p, HOT_BY_FUNCTION, false, 0, &table);
    assert_int_equal(table.count, 2);
    assert_int_equal(table.rows[0].line, 10);
    assert_int_equal(table.rows[0].self, 8);
    hot_table_done(&table);
    profile_free(p);
    trace_builder_done(&b);
}

/* f at one line, where g was inlined, and h into that, at two lines; and f without anything inlined. */
static void test_inlined(void **state)
{
    (void)state;
    static const char *const names[] = { "main", "f" };
    struct trace_builder b;
    trace_builder_init(&b, 64);
    b.trace.symbolized = true;
    struct trace *t = &b.trace;
    uint32_t file = trace_add_string(t, "/src/f.c");
    uint32_t thread = trace_builder_thread(&b, 1, 2, 0);
    add(&b, 0, names, 2, 0);
    uint32_t outer = t->stacks.rows[t->stacks.count - 1].parent;
    struct trace_location f = t->locations.rows[t->stacks.rows[t->stacks.count - 1].location];
    struct trace_function g = t->functions.rows[f.function], h = g;
    g.name = trace_add_string(t, "g");
    h.name = trace_add_string(t, "h");
    uint32_t g_id = trace_builder_function(&b, &g), h_id = trace_builder_function(&b, &h);
    f.file = file;
    f.line = 10;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t location = trace_push(&t->locations), stack = trace_push(&t->stacks);
        t->locations.rows[location] = f;
        if (i < 2) {
            uint32_t inner = trace_push(&t->inlined), call = trace_push(&t->inlined);
            t->inlined.rows[inner] = (struct trace_inlined){ h_id, file, 30 + i };
            t->inlined.rows[call] = (struct trace_inlined){ g_id, file, 20 };
            t->locations.rows[location].inlined = inner;
            t->locations.rows[location].inlined_count = 2;
        }
        t->stacks.rows[stack] = (struct trace_stack){ outer, location };
        trace_push_sample(&t->samples, 1000 + i, thread, stack, 1 + i, SAMPLE_CPU, 0);
    }
    struct hot_table table;
    struct profile *p = built(&b, &(struct profile_options){ .lines = true });
    hot_table_build(p, HOT_BY_FUNCTION, true, 0, &table);
    const struct hot_row *row_g = row_named(&table, "g");
    assert_int_equal(row_g->total, 3);
    assert_int_equal(row_g->self, 0);
    assert_true(row_g->inlined && row_g->line == 20);
    size_t seen = 0;
    for (size_t i = 0; i < table.count; i++) {
        const struct hot_row *row = &table.rows[i];
        if (strcmp(row->name, "h") == 0 && ++seen)
            assert_true(row->inlined && row->self == row->line - 29 && row->total == row->self);
        if (strcmp(row->name, "f") == 0 && row->line == 10)
            assert_true(!row->inlined && row->total == 6 && row->self == 3);
    }
    assert_int_equal(seen, 2);
    hot_table_done(&table);
    static const char *const path[] = { "h", "g", "f", "main" };
    uint32_t node = p->sample_node[1];
    for (size_t i = 0; i < ARRAY_LEN(path); i++, node = p->nodes[node].parent)
        assert_string_equal(p->frames[p->nodes[node].frame].name, path[i]);
    assert_int_equal(node, 0);
    profile_free(p);
    /* as a whole they are f's */
    p = built(&b, &(struct profile_options){ 0 });
    hot_table_build(p, HOT_BY_FUNCTION, false, 0, &table);
    assert_int_equal(table.count, 2);
    assert_int_equal(row_named(&table, "f")->self, 6);
    hot_table_done(&table);
    profile_free(p);
    trace_builder_done(&b);
}

/* Names of modules come from strangers, too: of any length, and with what would steer a terminal. */
static void test_hostile_module(void **state)
{
    (void)state;
    static char module[70001];
    memset(module, 'm', sizeof module - 1);
    module[0] = '\033';
    struct trace_builder b;
    folded_trace(&b, module, 1);
    trace_set_fact(&b.trace, FACT_UNIT, "\033c");
    uint32_t process = trace_builder_process(&b, 1);
    static const char path[] = "/tmp/\033[31mred";
    uint32_t image = trace_builder_image(&b, span_of(path, sizeof path - 1), IMAGE_ELF, 8, 1, 5);
    trace_builder_mapping(&b, process, 0x1000, 0x1000, 0, image, 0);
    trace_builder_sample(&b, &(struct raw_sample){ .user = &(uint64_t){ 0x1010 },
                                                   .user_count = 1,
                                                   .pid = 1,
                                                   .tid = 2,
                                                   .kind = SAMPLE_CPU,
                                                   .end = STACK_WHOLE });
    struct profile *p = built(&b, &(struct profile_options){ 0 });
    assert_int_equal(p->frame_count, 4);
    assert_int_equal(strlen(p->frames[1].module), sizeof module - 1 + 3);
    assert_string_equal(p->frames[3].module, "\\x1b[31mred");
    assert_string_equal(p->weight_unit, "\\x1bc");
    profile_free(p);
    trace_builder_done(&b);
}

/* Events that are recorded together lose samples together: which of them lost how many is not known. */
static void test_captured_is_of_all_events(void **state)
{
    (void)state;
    static const struct {
        enum sample_kind kind;
        uint64_t recorded;
    } asked[] = { { SAMPLE_CPU, 3 }, { SAMPLE_WAIT, 5 } };
    struct trace_builder b;
    trace_builder_init(&b, 64);
    for (uint64_t i = 0; i < 8; i++)
        trace_builder_sample(&b, &(struct raw_sample){ .time_ns = 100 + i,
                                                       .weight = 1,
                                                       .pid = 1,
                                                       .tid = 2,
                                                       .kind = i < 3 ? SAMPLE_CPU : SAMPLE_WAIT,
                                                       .end = STACK_WHOLE });
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        struct profile *p = built(&b, &(struct profile_options){ .kind = asked[i].kind });
        assert_int_equal(p->counts.recorded, asked[i].recorded);
        assert_int_equal(p->counts.captured, 8);
        profile_free(p);
    }
    trace_builder_done(&b);
}

/* How frames were found is told of the samples that are shown. */
static void test_frames_found_by_kind(void **state)
{
    (void)state;
    static const struct {
        enum sample_kind kind;
        const char *found;
    } cases[] = { { SAMPLE_CPU, "leaf 10" }, { SAMPLE_EVENT, "leaf 3" }, { SAMPLE_WALL, NULL } };
    struct trace_builder b;
    made_trace(&b);
    trace_set_fact(&b.trace, FACT_FRAMES_FOUND, "leaf 10");
    trace_set_fact(&b.trace, FACT_COUNTED_FRAMES_FOUND, "leaf 3");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct profile *p = built(&b, &(struct profile_options){ .kind = cases[i].kind });
        assert_true(cases[i].found ? strcmp(p->frames_found, cases[i].found) == 0 : !p->frames_found);
        profile_free(p);
    }
    trace_builder_done(&b);
}

/* The heaviest processes are named first, and three at most. */
static void test_title(void **state)
{
    static const unsigned weights[] = { 5, 9, 0, 7, 9 }; /* of processes 10, 11, ... */
    struct trace_builder b;
    (void)state;
    made_trace(&b);
    uint32_t stack = b.trace.samples.stack[0];
    for (uint32_t i = 0; i < ARRAY_LEN(weights); i++) {
        uint32_t pid = 10 + i, thread = trace_builder_thread(&b, pid, pid, 0);
        if (i == 1)
            b.trace.processes.rows[trace_builder_process(&b, pid)].name = trace_add_string(&b.trace, "web");
        for (unsigned k = 0; k < weights[i]; k++)
            trace_push_sample(&b.trace.samples, 3000 + k, thread, stack, 100, SAMPLE_CPU, 0);
    }
    struct profile *p = built(&b, &(struct profile_options){ .kind = SAMPLE_CPU });
    assert_string_equal(p->title, "web (11), process 14, process 13 and 2 more");
    profile_free(p);
    struct profile_options one = { .kind = SAMPLE_CPU, .who.process = "13" };
    p = built(&b, &one);
    assert_string_equal(p->title, "process 13");
    profile_free(p);
    trace_builder_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_title),
        cmocka_unit_test(test_frames_found_by_kind),
        cmocka_unit_test(test_self_and_total),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_filtered_away),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_neighbours_matched),
        cmocka_unit_test(test_when),
        cmocka_unit_test(test_when_full),
        cmocka_unit_test(test_time_order),
        cmocka_unit_test(test_large_counts),
        cmocka_unit_test(test_recursion_is_its_own_callee),
        cmocka_unit_test(test_tier_that_took_most),
        cmocka_unit_test(test_by_type),
        cmocka_unit_test(test_kind_of_module),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_inlined),
        cmocka_unit_test(test_hostile_module),
        cmocka_unit_test(test_captured_is_of_all_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
