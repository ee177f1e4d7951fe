#include "profile_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

#define MS 1000000ull

static void *copy_rows(const void *rows, size_t count, size_t size)
{
    void *copy = mem_alloc(count, size);
    return count ? memcpy(copy, rows, count * size) : copy;
}

static uint32_t child_of(struct profile *p, uint32_t parent, uint32_t frame, uint32_t from)
{
    for (uint32_t node = from; node < p->node_count; node++) {
        if (p->nodes[node].parent == parent && p->nodes[node].frame == frame)
            return node;
    }
    p->nodes[p->node_count] = (struct profile_node){ parent, frame };
    return p->node_count++;
}

static void allocate_samples(struct profile *p, size_t count)
{
    p->sample_node = mem_alloc(count, sizeof *p->sample_node);
    p->sample_thread = mem_alloc(count, sizeof *p->sample_thread);
    p->sample_time_ns = mem_alloc(count, sizeof *p->sample_time_ns);
    p->sample_weight = mem_alloc(count, sizeof *p->sample_weight);
    p->sample_cpu = mem_alloc(count, sizeof *p->sample_cpu);
}

static void add_sample(struct profile *p, uint32_t node, const struct fixture_sample *s)
{
    size_t i = p->sample_count++;
    p->sample_node[i] = node;
    p->sample_thread[i] = s->thread;
    p->sample_time_ns[i] = s->time_ns;
    p->sample_weight[i] = s->weight;
    p->sample_cpu[i] = s->cpu;
    p->threads[s->thread].samples++;
    p->threads[s->thread].weight += s->weight;
    p->counts.samples++;
    p->counts.whole++;
    p->counts.weight += s->weight;
    p->self[node] += s->weight;
}

static void sum_totals(struct profile *p)
{
    for (uint32_t node = 0; node < p->node_count; node++)
        p->total[node] = p->self[node];
    for (uint32_t node = p->node_count - 1; node > 0; node--)
        p->total[p->nodes[node].parent] += p->total[node];
}

static void allocate_nodes(struct profile *p, size_t most)
{
    p->nodes = mem_alloc(most, sizeof *p->nodes);
    p->self = mem_alloc(most, sizeof *p->self);
    p->total = mem_alloc(most, sizeof *p->total);
    p->node_count = 1;
}

static void build_tables(const struct fixture *f, struct profile *p)
{
    *p = (struct profile){
        .frames = copy_rows(f->frames, f->frame_count, sizeof *f->frames),
        .frame_count = f->frame_count,
        .threads = copy_rows(f->threads, f->thread_count, sizeof *f->threads),
        .thread_count = f->thread_count,
        .processes = copy_rows(f->processes, f->process_count, sizeof *f->processes),
        .process_count = f->process_count,
        .weight_unit = "ns",
        .title = "shop (pid 4096)",
        .event = "cpu-clock",
        .start_monotonic_ns = 1000 * 1000 * MS,
        .start_realtime_ns = 1700000000ull * 1000 * MS,
        .duration_ns = 1000 * MS,
        .rate_hz = 100,
    };
}

void profile_fixture_build(const struct fixture *f, struct profile *p)
{
    build_tables(f, p);
    allocate_nodes(p, f->sample_count * ARRAY_LEN(f->samples->path) + 1);
    allocate_samples(p, f->sample_count);
    for (size_t i = 0; i < f->sample_count; i++) {
        uint32_t node = 0;
        for (size_t k = 0; k < ARRAY_LEN(f->samples[i].path) && f->samples[i].path[k]; k++)
            node = child_of(p, node, f->samples[i].path[k], node + 1);
        add_sample(p, node, &f->samples[i]);
    }
    sum_totals(p);
}

void profile_fixture_done(struct profile *p)
{
    free(p->frames);
    free(p->nodes);
    free(p->self);
    free(p->total);
    free(p->sample_node);
    free(p->sample_thread);
    free(p->sample_time_ns);
    free(p->sample_weight);
    free(p->sample_cpu);
    free(p->threads);
    free(p->processes);
    arena_done(&p->arena);
    *p = (struct profile){ 0 };
}

static const struct profile_thread threads[] = {
    { 0 },
    { .pid = 4096, .tid = 4096, .name = "shop", .process_name = "shop" },
    { .pid = 4096, .tid = 4101, .name = ".NET TP Worker", .process_name = "shop" },
    { .pid = 5120, .tid = 5121, .name = "", .process_name = "price worker" },
};

static const struct profile_process processes[] = {
    { 0 },
    { 4096, "shop", "10.0.12", NULL },
    { 5120, "price worker", NULL, "9f1c" },
};

/* The tables are borrowed. */
static void add_timeline(struct profile *p, const struct timeline_mark *marks, size_t mark_count,
                         const struct timeline_size *sizes, size_t size_count)
{
    p->timeline = (struct timeline){ .marks = (struct timeline_mark *)marks,
                                     .mark_count = mark_count,
                                     .sizes = (struct timeline_size *)sizes,
                                     .size_count = size_count };
}

void profile_fixture_small(struct profile *p)
{
    static const struct timeline_mark marks[] = {
        { 12 * MS, 14 * MS, 4096, 4101, TIMELINE_PAUSE, "all threads stand still for the collector" },
        { 12 * MS + 1500, 13 * MS, 4096, 0, TIMELINE_COLLECTION, "#1 gen 0: small allocation" },
        { 22 * MS, 22 * MS, 4096, 4096, TIMELINE_EXCEPTION, "Shop.OutOfStock: no shoes" },
        { 23 * MS, 23 * MS, 6666, 1, TIMELINE_EXCEPTION, "of a process without samples" },
    };
    static const struct timeline_size sizes[] = { { 12 * MS, 5000, 4096 },
                                                  { 13 * MS, 2000, 4096 },
                                                  { 13 * MS, 7, 5120 } };
    static const struct profile_frame frames[] = {
        { 0 },
        { .name = "clone3", .module = "libc.so.6", .kind = CODE_NATIVE, .resolver = RESOLVER_ELF_DYNSYM },
        { .name = "Shop.Program.Main(String[])",
          .module = "shop",
          .file = "/src/Program.cs",
          .line = 12,
          .kind = CODE_JIT,
          .tier = TIER_1 },
        { .name = "System.String.Concat(String, String)",
          .module = "System.Private.CoreLib",
          .kind = CODE_R2R,
          .tier = TIER_R2R },
        { .name = "libcoreclr.so!0x2f3a10", .module = "libcoreclr.so", .kind = CODE_RUNTIME },
        { .name = "do_syscall_64", .module = "[kernel]", .kind = CODE_KERNEL },
        { .name = "Shop.Orders+Line.Total()", .module = "shop", .kind = CODE_JIT, .tier = TIER_0 },
        { .name = "[write barrier]", .module = "", .kind = CODE_STUB },
    };
    static const struct fixture_sample samples[] = {
        { 0 * MS, 10 * MS, 1, 0, { 2, 3 } },           { 10 * MS, 10 * MS, 1, 1, { 2, 3 } },
        { 15 * MS, 10 * MS, 2, 0, { 1, 4, 5 } },       { 20 * MS, 10 * MS, 1, 1, { 2, 6, 7 } },
        { 25 * MS, 10 * MS, 2, 0, { 1, 4 } },          { 30 * MS + 4567, 10 * MS, 3, 3, { 2, 3 } },
        { 40 * MS, 9999999, 1, 1, { 2, 6, 6, 4, 5 } }, { 50 * MS, 10 * MS, 2, 0, { 0 } },
    };
    profile_fixture_build(&(struct fixture){ frames, ARRAY_LEN(frames), threads, ARRAY_LEN(threads),
                                             processes, ARRAY_LEN(processes), samples, ARRAY_LEN(samples) },
                          p);
    p->counts.lost = 3;
    add_timeline(p, marks, ARRAY_LEN(marks), sizes, ARRAY_LEN(sizes));
}

void profile_fixture_nasty(struct profile *p)
{
    static char longest[5001];
    memset(longest, 'x', sizeof longest - 1);
    const struct profile_frame frames[] = {
        { 0 },
        { .name = "a;b\nc\td", .module = "mod (x) y", .kind = CODE_JIT },
        { .name = "say(\"hi\\\")", .module = "shop", .kind = CODE_JIT },
        { .name = "</script><!-- &amp;", .module = "</script>", .kind = CODE_JIT },
        { .name = "evil\xe2\x80\xaegpj.exe\xe2\x80\xa8", .module = "shop", .kind = CODE_JIT },
        { .name = "(anonymous namespace)::run() const", .module = "libx.so", .kind = CODE_NATIVE },
        { .name = "Ptr::operator->()+<>c.<Run>b__0_1\x01", .module = "libx.so", .kind = CODE_NATIVE },
        { .name = longest, .module = "shop", .kind = CODE_JIT },
        { .name = "\xc3\x9c"
                  "ber.L\xc3\xa4ufer\xe2\x82\xac",
          .module = "shop",
          .kind = CODE_JIT },
    };
    const struct profile_thread nasty_threads[] = {
        { 0 },
        { .pid = 7, .tid = 7, .name = "work 12 34/56 x: 1.5: y;", .process_name = "a;b c" },
        { .pid = 7, .tid = 8, .name = "x", .process_name = "a;b c" },
    };
    static const struct timeline_mark marks[] = {
        { 1 * MS, 1 * MS, 7, 8, TIMELINE_EXCEPTION, "</script>\"\n\x01\xe2\x80\xae: \xc3\x9c" },
    };
    const struct fixture_sample samples[] = {
        { 1 * MS, 10 * MS, 1, 0, { 1, 2, 3, 4, 5, 6, 7, 8 } },
        { 2 * MS, 10 * MS, 2, 0, { 5 } },
    };
    profile_fixture_build(&(struct fixture){ frames, ARRAY_LEN(frames), nasty_threads,
                                             ARRAY_LEN(nasty_threads), processes, 2, samples,
                                             ARRAY_LEN(samples) },
                          p);
    add_timeline(p, marks, ARRAY_LEN(marks), NULL, 0);
}

void profile_fixture_empty(struct profile *p)
{
    static const struct profile_frame none = { 0 };
    profile_fixture_build(&(struct fixture){ &none, 1, threads, 1, processes, 1, NULL, 0 }, p);
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

enum { LARGE_FRAMES = 4001, LARGE_THREADS = 9, LARGE_NODES = 800000 };

static void large_tables(struct arena *texts, struct profile_frame *frames, struct profile_thread *workers)
{
    char text[80];
    for (unsigned i = 1; i < LARGE_FRAMES; i++) {
        int size = snprintf(text, sizeof text, "Contoso.Area%u.Component%u.Method%u(String, Int32)", i % 17,
                            i % 301, i);
        frames[i] = (struct profile_frame){
            .name = arena_string(texts, span_of(text, (size_t)size)),
            .module = i % 3 ? "Contoso" : "System.Private.CoreLib",
            .kind = i % 11 ? CODE_JIT : CODE_KERNEL,
        };
    }
    for (unsigned i = 1; i < LARGE_THREADS; i++) {
        int size = snprintf(text, sizeof text, "worker %u", i);
        workers[i] = (struct profile_thread){ .pid = 4096,
                                              .tid = 4095 + i,
                                              .name = arena_string(texts, span_of(text, (size_t)size)),
                                              .process_name = "shop" };
    }
}

/* Chains of 60 that branch off near the root. */
static void grow_tree(struct profile *p, uint64_t *state)
{
    while (p->node_count < LARGE_NODES) {
        uint32_t parent = p->node_count - 1;
        if (p->node_count % 60 == 0)
            parent = (uint32_t)(random_next(state) % 50);
        uint32_t frame = 1 + (uint32_t)(random_next(state) % (LARGE_FRAMES - 1));
        p->nodes[p->node_count++] = (struct profile_node){ parent, frame };
    }
}

void profile_fixture_large(struct profile *p, size_t sample_count)
{
    struct profile_frame *frames = mem_alloc(LARGE_FRAMES, sizeof *frames);
    struct profile_thread *workers = mem_alloc(LARGE_THREADS, sizeof *workers);
    struct arena texts;
    uint64_t state = 1;
    arena_init(&texts, SIZE_MAX);
    large_tables(&texts, frames, workers);
    build_tables(&(struct fixture){ frames, LARGE_FRAMES, workers, LARGE_THREADS, processes, 2, NULL, 0 }, p);
    p->arena = texts;
    free(frames);
    free(workers);
    allocate_nodes(p, LARGE_NODES);
    grow_tree(p, &state);
    allocate_samples(p, sample_count);
    for (size_t i = 0; i < sample_count; i++) {
        struct fixture_sample s = { .time_ns = i * 125000,
                                    .weight = 1 * MS,
                                    .thread = 1 + (uint32_t)(random_next(&state) % (LARGE_THREADS - 1)),
                                    .cpu = (uint16_t)(i % 2) };
        add_sample(p, 1 + (uint32_t)(random_next(&state) % (LARGE_NODES - 1)), &s);
    }
    sum_totals(p);
    p->duration_ns = sample_count * 125000;
    p->rate_hz = 1000;
}
