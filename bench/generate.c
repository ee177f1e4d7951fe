/*
 * generate: makes the "typical" and "diverse" workloads of the benchmarks, the same bytes for the same seed.
 *
 *   generate source [SEED] [typical|diverse] > workload.c
 *   nm -S --defined-only workload | generate perf-data SAMPLES PATH [SEED] [typical|diverse] > perf.data
 *
 * The first is a C program of 3,000 functions with four callees each, for a recording by a real profiler.
 * The second writes what `perf record -e cpu-clock -g -F 24999` of that program on two CPUs would look like,
 * without the minutes; PATH is the absolute path of the program, so that perf finds its symbols. Without
 * symbols on standard input it makes addresses up.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FUNCTIONS = 3000,
    CALLEES = 4,
    ENDPOINTS = 64,
    DEPTH_MIN = 8,
    DEPTH_MAX = 70,
    CPUS = 2,
    ROUND_SAMPLES = 1000, /* per CPU, between two FINISHED_ROUND */
    PERIOD_NS = 40001,    /* 24,999 Hz */
    TYPICAL_LEAF_PLACES = 2,
};

#define LOAD_ADDR 0x555555554000ull
#define START_NS  1000000000000ull

struct workload {
    uint64_t random;
    bool is_diverse;
    unsigned callee[FUNCTIONS][CALLEES];
    unsigned endpoint[ENDPOINTS];
    unsigned weight[ENDPOINTS], weights;
};

struct symbol {
    uint64_t addr, size;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1dull;
}

static unsigned below(uint64_t *state, unsigned limit)
{
    return (unsigned)((next_random(state) >> 33) % limit);
}

static void workload_init(struct workload *w, uint64_t seed, bool is_diverse)
{
    *w = (struct workload){ .random = seed * 0x9e3779b97f4a7c15ull + 1, .is_diverse = is_diverse };
    for (unsigned f = 0; f < FUNCTIONS; f++)
        for (unsigned i = 0; i < CALLEES; i++)
            w->callee[f][i] = below(&w->random, FUNCTIONS);
    for (unsigned e = 0; e < ENDPOINTS; e++) {
        w->endpoint[e] = below(&w->random, FUNCTIONS);
        w->weight[e] = 1000 / (e + 1); /* a few endpoints get most of the requests */
        w->weights += w->weight[e];
    }
}

static unsigned choose_endpoint(const struct workload *w, uint64_t *random)
{
    unsigned at = below(random, w->weights), e = 0;
    while (at >= w->weight[e])
        at -= w->weight[e++];
    return w->endpoint[e];
}

/* 98.5, 1.1, 0.3 and 0.1 percent; or all alike. */
static unsigned choose_callee(const struct workload *w, uint64_t *random)
{
    unsigned at = below(random, 1000);
    if (w->is_diverse)
        return at % CALLEES;
    return at < 985 ? 0 : at < 996 ? 1 : at < 999 ? 2 : 3;
}

/* Source of a program. */

static void print_name(unsigned f)
{
    static const char *const areas[] = { "Orders", "Billing", "Catalog", "Shipping",
                                         "Search", "Users",   "Reports", "Inventory" };
    static const char *const verbs[] = { "Validate", "Serialize", "Aggregate", "Resolve",
                                         "Dispatch", "Transform", "Enumerate" };
    printf("Acme_%s_Services_%sHandler_%sAsync_%04u", areas[f % 8], areas[f / 8 % 8], verbs[f % 7], f);
}

static void print_function(const struct workload *w, unsigned f)
{
    printf("__attribute__((noinline)) void ");
    print_name(f);
    printf("(int depth)\n{\n    if (depth <= 0) {\n        work();\n        return;\n    }\n"
           "    switch (choose()) {\n");
    for (unsigned i = 0; i < CALLEES; i++) {
        printf(i == CALLEES - 1 ? "    default:\n        " : "    case %u:\n        ", i);
        print_name(w->callee[f][i]);
        printf("(depth - 1);\n        break;\n");
    }
    printf("    }\n    __asm__ volatile(\"\");\n}\n");
}

static void print_source(const struct workload *w)
{
    printf("/* cc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls workload.c -o workload;\n"
           " * workload SECONDS */\n"
           "#include <stdint.h>\n#include <stdlib.h>\n#include <time.h>\n"
           "static uint64_t seed = 88172645463325252ull;\nstatic volatile uint64_t sink;\n"
           "static inline unsigned next(void)\n{\n    seed ^= seed << 13;\n    seed ^= seed >> 7;\n"
           "    seed ^= seed << 17;\n    return (unsigned)(seed * 0x2545f4914f6cdd1dull >> 33);\n}\n"
           "static inline __attribute__((always_inline)) unsigned choose(void)\n{\n"
           "    unsigned at = next() %% 1000;\n");
    printf(w->is_diverse ? "    return at %% 4;\n}\n"
                         : "    return at < 985 ? 0 : at < 996 ? 1 : at < 999 ? 2 : 3;\n}\n");
    printf("static inline __attribute__((always_inline)) void work(void)\n{\n"
           "    for (unsigned i = 0; i < 20000; i++)\n        sink += i;\n}\n");
    for (unsigned f = 0; f < FUNCTIONS; f++) {
        printf("void ");
        print_name(f);
        printf("(int depth);\n");
    }
    for (unsigned f = 0; f < FUNCTIONS; f++)
        print_function(w, f);
    printf("static void (*const endpoint[])(int) = {\n");
    for (unsigned e = 0; e < ENDPOINTS; e++) {
        printf("    ");
        print_name(w->endpoint[e]);
        printf(",\n");
    }
    printf("};\nstatic const unsigned weight[] = {");
    for (unsigned e = 0; e < ENDPOINTS; e++)
        printf(" %u,", w->weight[e]);
    printf(" };\nint main(int argc, char **argv)\n{\n    long seconds = argc > 1 ? atol(argv[1]) : 10;\n"
           "    time_t end = time(NULL) + seconds;\n    while (time(NULL) < end) {\n"
           "        unsigned at = next() %% %u, e = 0;\n        while (at >= weight[e])\n"
           "            at -= weight[e++];\n        endpoint[e](%d + (int)(next() %% %d));\n    }\n"
           "    return 0;\n}\n",
           w->weights, DEPTH_MIN, DEPTH_MAX - DEPTH_MIN + 1);
}

/* perf.data. */

static uint64_t written;

static void put(const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, stdout) != size) {
        fprintf(stderr, "error: cannot write the result\n");
        exit(1);
    }
    written += size;
}

static void put_u32(uint32_t value)
{
    put(&value, sizeof value);
}

static void put_u64(uint64_t value)
{
    put(&value, sizeof value);
}

static void put_record(uint32_t type, uint16_t misc, size_t body)
{
    uint16_t size = (uint16_t)(8 + body);
    put_u32(type);
    put(&misc, sizeof misc);
    put(&size, sizeof size);
}

static void put_padded(const char *text, size_t size)
{
    char padded[4096] = "";
    memcpy(padded, text, strlen(text));
    put(padded, size);
}

/* sample_id: pid and tid, time, id. The sizes below count it. */
enum { TRAILER_BYTES = 16, PID = 4242 };

static void put_trailer(uint64_t time_ns)
{
    put_u32(PID);
    put_u32(PID);
    put_u64(time_ns);
}

static size_t padded_size(const char *text)
{
    return (strlen(text) + 8) / 8 * 8;
}

static void put_program(const char *path, uint64_t size_bytes)
{
    put_record(3 /* COMM */, 1 << 13, 8 + 16 + TRAILER_BYTES);
    put_u32(PID);
    put_u32(PID);
    put_padded("workload", 16);
    put_trailer(START_NS - 2000);
    put_record(10 /* MMAP2 */, 2, 64 + padded_size(path) + TRAILER_BYTES);
    put_u32(PID);
    put_u32(PID);
    put_u64(LOAD_ADDR);
    put_u64(size_bytes);
    put_u64(0); /* file offset */
    put_u64(0); /* device */
    put_u64(0); /* inode */
    put_u64(0);
    put_u32(5); /* readable, executable */
    put_u32(2); /* private */
    put_padded(path, padded_size(path));
    put_trailer(START_NS - 1000);
    for (unsigned cpu = 1; cpu < CPUS; cpu++) {
        put_record(7 /* FORK */, 0, 24 + TRAILER_BYTES);
        put_u32(PID);
        put_u32(PID);
        put_u32(PID + cpu);
        put_u32(PID);
        put_u64(START_NS - 500);
        put_trailer(START_NS - 500);
    }
}

struct maker {
    struct workload w;
    struct symbol symbols[FUNCTIONS];
    uint64_t random;
};

static uint64_t place_in(const struct symbol *s, uint64_t off)
{
    return LOAD_ADDR + s->addr + off % (s->size ? s->size : 1);
}

static void put_sample(struct maker *m, unsigned cpu, uint64_t time_ns)
{
    uint64_t chain[DEPTH_MAX + 1];
    unsigned depth = DEPTH_MIN + below(&m->random, DEPTH_MAX - DEPTH_MIN + 1);
    unsigned f = choose_endpoint(&m->w, &m->random);
    for (unsigned level = depth; level > 1; level--) {
        unsigned i = choose_callee(&m->w, &m->random);
        chain[level - 1] = place_in(&m->symbols[f], 40 + 12 * i); /* each call returns elsewhere */
        f = m->w.callee[f][i];
    }
    chain[0] = place_in(&m->symbols[f], 20 + 4 * below(&m->random, TYPICAL_LEAF_PLACES));
    put_record(9 /* SAMPLE */, 2 /* user */, 8 * (6 + depth));
    put_u64(chain[0]);
    put_u32(PID);
    put_u32(PID + cpu);
    put_u64(time_ns);
    put_u64(PERIOD_NS);
    put_u64(depth + 1);
    put_u64((uint64_t)-512); /* PERF_CONTEXT_USER */
    put(chain, depth * sizeof *chain);
}

/* PERF_SAMPLE_IP, TID, TIME, CALLCHAIN and PERIOD, as perf record -g of one event has them. */
static void put_attr(void)
{
    enum { ATTR_BYTES = 128 };
    uint64_t start = written;
    put_u32(1); /* software */
    put_u32(ATTR_BYTES);
    put_u64(0); /* cpu-clock */
    put_u64(24999);
    put_u64(1 | 2 | 4 | 0x20 | 0x100);
    put_u64(0x14); /* read_format: ID, LOST */
    /* inherit, mmap, comm, freq, task, sample_id_all, exclude_guest, mmap2, comm_exec */
    put_u64(1 << 1 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 13 | 1 << 18 | 1 << 20 | 1 << 23 | 1 << 24);
    while (written - start < ATTR_BYTES)
        put_u64(0);
}

static void put_text(const char *text)
{
    uint32_t size = (uint32_t)(strlen(text) + 64) / 64 * 64; /* as perf pads them */
    put_u32(size);
    put_padded(text, size);
}

/* The features that follow the data: hostname 3, arch 6, nrcpus 7, cmdline 11. */
static const uint64_t feature_bits = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 11;

static void put_features(void)
{
    static const uint64_t sizes[] = { 68, 68, 8, 4 + 2 * 68 };
    uint64_t at = written + sizeof sizes / sizeof *sizes * 16;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put_u64(at);
        put_u64(sizes[i]);
        at += sizes[i];
    }
    put_text("bench");
    put_text("x86_64");
    put_u32(CPUS);
    put_u32(CPUS);
    put_u32(2);
    put_text("generate");
    put_text("perf-data");
}

/* Samples come in rounds, ring after ring, so they are not in the order of their times. */
static void put_data(struct maker *m, const char *path, uint64_t program_bytes, uint64_t samples)
{
    uint64_t done[CPUS] = { 0 };
    put_program(path, program_bytes);
    while (samples > 0) {
        for (unsigned cpu = 0; cpu < CPUS && samples > 0; cpu++) {
            for (unsigned i = 0; i < ROUND_SAMPLES && samples > 0; i++, samples--)
                put_sample(m, cpu, START_NS + done[cpu]++ * PERIOD_NS + cpu * (PERIOD_NS / CPUS));
        }
        put_record(68 /* FINISHED_ROUND */, 0, 0);
    }
}

static void put_file(struct maker *m, const char *path, uint64_t program_bytes, uint64_t samples,
                     uint64_t data_bytes)
{
    enum { HEADER_BYTES = 104, IDS_BYTES = 8 * CPUS, ATTR_ENTRY_BYTES = 128 + 16 };
    put("PERFILE2", 8);
    put_u64(HEADER_BYTES);
    put_u64(ATTR_ENTRY_BYTES);
    put_u64(HEADER_BYTES + IDS_BYTES);
    put_u64(ATTR_ENTRY_BYTES);
    put_u64(HEADER_BYTES + IDS_BYTES + ATTR_ENTRY_BYTES);
    put_u64(data_bytes);
    put_u64(0);
    put_u64(0);
    put_u64(feature_bits);
    for (unsigned i = 0; i < 3; i++)
        put_u64(0);
    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        put_u64(100 + cpu);
    put_attr();
    put_u64(HEADER_BYTES);
    put_u64(IDS_BYTES);
    put_data(m, path, program_bytes, samples);
    put_features();
}

/* `nm -S`: "ADDR SIZE t NAME". Returns the end of the program. */
static uint64_t read_symbols(struct symbol *symbols)
{
    char line[512];
    uint64_t end = 0;
    for (unsigned f = 0; f < FUNCTIONS; f++)
        symbols[f] = (struct symbol){ 0x1000 + f * 0x100, 0x100 };
    while (fgets(line, sizeof line, stdin)) {
        uint64_t addr, size;
        char kind;
        unsigned number;
        const char *name = strstr(line, "Async_");
        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c", &addr, &size, &kind) != 3)
            continue;
        if (addr + size > end)
            end = addr + size;
        if (name && sscanf(name, "Async_%u", &number) == 1 && number < FUNCTIONS)
            symbols[number] = (struct symbol){ addr, size };
    }
    return end ? end : 0x1000 + FUNCTIONS * 0x100;
}

/* The samples' sizes decide where the data ends; the same seed gives the same sizes. */
static uint64_t data_size(const struct maker *m, const char *path, uint64_t samples)
{
    struct maker *copy = malloc(sizeof *copy);
    if (!copy)
        exit(1);
    *copy = *m;
    uint64_t size = 8 + 8 + 16 + TRAILER_BYTES;
    size += 8 + 64 + padded_size(path) + TRAILER_BYTES;
    size += (CPUS - 1) * (8 + 24 + TRAILER_BYTES);
    size += (samples + CPUS * ROUND_SAMPLES - 1) / (CPUS * ROUND_SAMPLES) * 8;
    for (uint64_t i = 0; i < samples; i++) {
        unsigned depth = DEPTH_MIN + below(&copy->random, DEPTH_MAX - DEPTH_MIN + 1);
        below(&copy->random, 2);
        for (unsigned level = depth; level > 1; level--)
            below(&copy->random, 2);
        below(&copy->random, 2);
        size += 8 + 8 * (6 + depth);
    }
    free(copy);
    return size;
}

int main(int argc, char **argv)
{
    static struct maker m;
    bool is_source = argc > 1 && strcmp(argv[1], "source") == 0;
    bool is_data = argc > 3 && strcmp(argv[1], "perf-data") == 0;
    if (!is_source && !is_data) {
        fprintf(stderr, "usage: generate source [SEED] [typical|diverse]\n"
                        "       nm -S --defined-only PROGRAM | "
                        "generate perf-data SAMPLES PATH [SEED] [typical|diverse]\n");
        return 2;
    }
    int rest = is_source ? 2 : 4;
    uint64_t seed = argc > rest ? strtoull(argv[rest], NULL, 10) : 1;
    bool is_diverse = argc > rest + 1 && strcmp(argv[rest + 1], "diverse") == 0;
    workload_init(&m.w, seed, is_diverse);
    m.random = m.w.random;
    if (is_source) {
        print_source(&m.w);
    } else {
        uint64_t samples = strtoull(argv[2], NULL, 10);
        uint64_t program_bytes = (read_symbols(m.symbols) + 0xfff) & ~0xfffull;
        put_file(&m, argv[3], program_bytes, samples, data_size(&m, argv[3], samples));
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
