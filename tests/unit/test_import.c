#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "import/import.h"
#include "temp_folder.h"
#include "trace/facts.h"

enum { GOLDEN_SAMPLES = 40 };

struct result {
    struct trace_builder b;
    struct error err;
    bool ok, is_recognised;
};

static void import_path(struct result *r, const char *path, const char *event)
{
    struct import_options options = { .event = event };
    *r = (struct result){ 0 };
    trace_builder_init(&r->b, 1 << 10);
    r->ok = import_open(path, &options, &r->b, &r->is_recognised, &r->err);
}

static void import_bytes(struct result *r, struct span bytes, const char *event)
{
    char path[64];
    AUTO_FD int fd = memfd_create("input", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.data, bytes.size), bytes.size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    import_path(r, path, event);
}

static void import_text(struct result *r, const char *text, const char *event)
{
    import_bytes(r, span_of(text, strlen(text)), event);
}

static const char *fact(const struct result *r, const char *key)
{
    const char *value = trace_fact_value(&r->b.trace, key);
    return value ? value : "";
}

/* "leaf(module)kind caller(module)kind ..." */
static void stack_text(const struct trace *t, uint32_t stack, char *out, size_t size)
{
    out[0] = 0;
    for (; stack >= STACK_ROOTS; stack = t->stacks.rows[stack].parent) {
        const struct trace_location *l = &t->locations.rows[t->stacks.rows[stack].location];
        const struct trace_function *f = &t->functions.rows[l->function];
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s(%s)%s", used ? " " : "",
                 l->function ? trace_string(t, f->name) : "?", l->function ? trace_string(t, f->module) : "",
                 code_kind_name(f->kind));
    }
}

static void test_perf_data(void **state)
{
    (void)state;
    struct result r;
    import_path(&r,
                GOLDEN_DIR "/perf_data"
                           "/small.perf.data",
                NULL);
    if (!r.ok)
        fail_msg("%s", r.err.what);
    const struct trace *t = &r.b.trace;
    assert_true(r.is_recognised);
    assert_true(t->complete);
    assert_int_equal(t->samples.count, GOLDEN_SAMPLES);
    /* what the process was before its exec is a row of its own */
    assert_int_equal(t->processes.count, 3);
    assert_int_equal(t->processes.rows[1].pid, 4242);
    assert_int_equal(t->processes.rows[2].pid, 4242);
    assert_string_equal(trace_string(t, t->processes.rows[2].name), "workload");
    assert_int_equal(t->mappings.count, 2);
    assert_string_equal(trace_string(t, t->images.rows[t->mappings.rows[1].image].path),
                        "/opt/acme/workload");
    assert_int_equal(t->samples.weight[0], 40001);
    assert_string_equal(fact(&r, FACT_FORMAT), "perf.data");
    assert_string_equal(fact(&r, FACT_EVENT), "cpu-clock");
    assert_string_equal(fact(&r, FACT_UNIT), "ns");
    assert_string_equal(fact(&r, FACT_RATE_HZ), "24999");
    assert_string_equal(fact(&r, FACT_HOST), "bench");
    for (size_t i = 0; i < t->samples.count; i++)
        assert_int_equal(trace_stack_end(t, t->samples.stack[i]), STACK_WHOLE);
    trace_builder_done(&r.b);
}

/* Returns how many they are. */
static size_t golden_bytes(uint8_t *into, size_t size)
{
    AUTO_STREAM FILE *golden = fopen(GOLDEN_DIR "/perf_data"
                                                "/small.perf.data",
                                     "rb");
    assert_non_null(golden);
    return fread(into, 1, size, golden);
}

static void test_killed_recorder(void **state)
{
    (void)state;
    uint8_t bytes[20000];
    size_t size = golden_bytes(bytes, sizeof bytes);
    memset(bytes + 48, 0, 8); /* the size of the data is written last */
    AUTO_FD int fd = memfd_create("killed", MFD_CLOEXEC);
    /* cut within the last record */
    size_t cut = size - 4 * 16 - 68 - 68 - 8 - 140 - 8 - 20;
    assert_int_equal(write(fd, bytes, cut), cut);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct result r;
    import_path(&r, path, NULL);
    assert_true(r.ok);
    assert_int_equal(r.b.trace.samples.count, GOLDEN_SAMPLES - 1);
    assert_false(r.b.trace.complete);
    assert_int_equal(r.b.trace.gaps.count, 2);
    assert_non_null(strstr(fact(&r, FACT_NOTES), "was killed"));
    trace_builder_done(&r.b);
}

/* What `perf record --kcore` makes is read; of --threads `data` alone would have no samples. */
static void test_perf_data_folder(void **state)
{
    (void)state;
    uint8_t bytes[20000];
    size_t size = golden_bytes(bytes, sizeof bytes);
    char folder[200], data[210];
    assert_true(temp_folder_make(folder, sizeof folder));
    snprintf(data, sizeof data, "%s/data", folder);
    for (int of_threads = 0; of_threads <= 1; of_threads++) {
        bytes[72 + 3] = (uint8_t)(bytes[72 + 3] | of_threads); /* bit 24 of the features */
        AUTO_STREAM FILE *file = fopen(data, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        fflush(file);
        for (int i = 0; i <= 1; i++) {
            struct result r;
            import_path(&r, i ? data : folder, NULL);
            assert_int_equal(r.ok, !of_threads);
            if (of_threads) {
                assert_int_equal(r.err.kind, ERROR_UNSUPPORTED);
                assert_non_null(strstr(r.err.what, folder));
                assert_non_null(strstr(r.err.hint, "record without --threads"));
            } else {
                assert_int_equal(r.b.trace.samples.count, GOLDEN_SAMPLES);
            }
            trace_builder_done(&r.b);
        }
    }
    unlink(data);
    rmdir(folder);
}

static const char script[] =
    "# hostname : box\n"
    "#\n"
    "app 10/11 [001] 100.000001:  10101010 cpu-clock: \n"
    "\tffffffff81001234 do_syscall_64+0x5b ([kernel.kallsyms])\n"
    "\tffffffffc0001234 nf_hook+0x1 ([nf_tables])\n"
    "\t    7f0000000010 inner+0x1 (inlined)\n"
    "\t    7f0000000010 write+0x10 (/usr/lib/libc.so.6)\n"
    "\t    7f0000001000 void [App] N.T::M()[Tier1]+0x10 (/tmp/perf-10.map)\n"
    "\t    7f0000002000 System.String::Concat+0x10 (/usr/share/System.Private.CoreLib.dll)\n"
    "\t               5 Shop.Order.Pay() (jitted/Shop.dll)\n"
    "\t    7f0000003000 EEStartup+0x10 (/usr/share/libcoreclr.so)\n"
    "\t    7f0000004000 [unknown] (/memfd:doublemapper (deleted))\n"
    "\n"
    "app 10/11 [001] 100.000002:  1 page-faults: \n"
    "\t    7f0000000010 f+0x1 (/x)\n"
    "\n"
    "app 10/12 [000] 100.000003:  10101010 cpu-clock: \n"
    "\t    7f0000003000 EEStartup+0x10 (/usr/share/libcoreclr.so)\n";

static void put_record(struct buffer *b, uint32_t type, size_t size)
{
    buffer_u32le(b, type);
    buffer_u16le(b, type == PERF_RECORD_SAMPLE ? PERF_RECORD_MISC_KERNEL : 0);
    buffer_u16le(b, (uint16_t)size);
}

enum { ATTR_BYTES = 96, REG_IP = 8, SAMPLE_ID = 500 };

/* What `perf record -o -` begins with, of one event. */
static void put_pipe_start(struct buffer *b)
{
    buffer_string(b, "PERFILE2");
    buffer_u64le(b, 16);
}

static void put_event(struct buffer *b, uint64_t config, uint64_t sample_type, uint64_t id)
{
    put_record(b, 64 /* HEADER_ATTR */, 8 + ATTR_BYTES + 8);
    buffer_u32le(b, PERF_TYPE_SOFTWARE);
    buffer_u32le(b, ATTR_BYTES);
    buffer_u64le(b, config);
    buffer_u64le(b, 1000);
    buffer_u64le(b, sample_type);
    for (unsigned i = 0; i < 6; i++)
        buffer_u64le(b, 0);
    buffer_u64le(b, sample_type & PERF_SAMPLE_REGS_USER ? 1 << REG_IP : 0);
    buffer_u64le(b, 0);
    buffer_u64le(b, id);
}

static void put_kernel_sample(struct buffer *b, uint64_t time_ns, size_t frames)
{
    put_record(b, PERF_RECORD_SAMPLE, 8 * (1 + 2 + 2 + frames + 2));
    buffer_u64le(b, (uint64_t)8 << 32 | 7);
    buffer_u64le(b, time_ns);
    buffer_u64le(b, 1 + frames);
    buffer_u64le(b, (uint64_t)PERF_CONTEXT_KERNEL);
    for (uint64_t i = 0; i < frames; i++)
        buffer_u64le(b, 0xffffffff81000000 + 16 * i);
    buffer_u64le(b, PERF_SAMPLE_REGS_ABI_64);
    buffer_u64le(b, 0x401000); /* the user's instruction pointer */
}

/* Kernel frames up to the last that are taken: then there is no room for the user's. */
static void test_many_kernel_frames(void **state)
{
    (void)state;
    static const size_t frames[] = { 1, 1022, 1023, 1024, 1025, 2000, 1 };
    struct buffer b;
    struct result r;
    buffer_init(&b, 1 << 20);
    put_pipe_start(&b);
    put_event(&b, PERF_COUNT_SW_CPU_CLOCK,
              PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER, SAMPLE_ID);
    for (size_t i = 0; i < ARRAY_LEN(frames); i++)
        put_kernel_sample(&b, 1000 + i, frames[i]);
    import_bytes(&r, buffer_span(&b), NULL);
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    assert_int_equal(t->samples.count, ARRAY_LEN(frames));
    for (size_t i = 0; i < ARRAY_LEN(frames); i++)
        assert_int_equal(trace_stack_end(t, t->samples.stack[i]), STACK_TRUNCATED);
    trace_builder_done(&r.b);
    buffer_done(&b);
}

enum {
    SYSTEM_SAMPLE_TYPE = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN
};

/* In the kernel, with a user's frame below or not. */
static void put_system_sample(struct buffer *b, uint64_t id, uint32_t pid, uint64_t time_ns,
                              bool has_user_frame)
{
    size_t words = has_user_frame ? 4 : 2;
    put_record(b, PERF_RECORD_SAMPLE, 8 * (1 + 4 + words));
    buffer_u64le(b, id);
    buffer_u64le(b, (uint64_t)pid << 32 | pid);
    buffer_u64le(b, time_ns);
    buffer_u64le(b, words);
    buffer_u64le(b, (uint64_t)PERF_CONTEXT_KERNEL);
    buffer_u64le(b, 0xffffffff81000000);
    if (has_user_frame) {
        buffer_u64le(b, (uint64_t)PERF_CONTEXT_USER);
        buffer_u64le(b, 0x401000);
    }
}

/* `perf record -a`: what CPUs do that have nothing to do is no CPU time. */
static void test_idle(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t config;
        bool outside; /* a process of another namespace */
        size_t kept;
        const char *process, *note;
    } cases[] = {
        { "CPU time", PERF_COUNT_SW_CPU_CLOCK, false, 1, NULL, "samples of idle CPUs are left out: 2" },
        { "switches", PERF_COUNT_SW_CONTEXT_SWITCHES, false, 3, "swapper", "" },
        { "user code without a number", PERF_COUNT_SW_CPU_CLOCK, true, 3, "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        struct result r;
        uint64_t duration_ns = 0;
        buffer_init(&b, 4096);
        put_pipe_start(&b);
        put_event(&b, cases[i].config, SYSTEM_SAMPLE_TYPE, SAMPLE_ID);
        put_system_sample(&b, SAMPLE_ID, 0, 1000, cases[i].outside);
        put_system_sample(&b, SAMPLE_ID, 7, 2000, true);
        put_system_sample(&b, SAMPLE_ID, 0, 3000, cases[i].outside);
        import_bytes(&r, buffer_span(&b), NULL);
        const struct trace *t = &r.b.trace;
        if (!r.ok || t->samples.count != cases[i].kept || strcmp(fact(&r, FACT_NOTES), cases[i].note) != 0)
            fail_msg("%s: %zu samples, '%s'", cases[i].name, t->samples.count, fact(&r, FACT_NOTES));
        uint32_t idle = trace_builder_process(&r.b, 0);
        if (!idle != !cases[i].process ||
            (idle && strcmp(trace_string(t, t->processes.rows[idle].name), cases[i].process) != 0))
            fail_msg("%s: the process is called wrongly", cases[i].name);
        /* the time in which nothing ran counts, too */
        trace_fact_number(t, FACT_DURATION_NS, &duration_ns);
        assert_int_equal(duration_ns, cases[i].kept == 1 ? 2000 : 0);
        trace_builder_done(&r.b);
        buffer_done(&b);
    }
}

/* An event of CPUs is shown, the first other one is kept as what is counted, and the rest is told. */
static void test_several_events(void **state)
{
    (void)state;
    static const struct {
        uint64_t id, config;
        uint32_t samples;
    } events[] = {
        { 1, PERF_COUNT_SW_CONTEXT_SWITCHES, 3 },
        { 2, PERF_COUNT_SW_CPU_CLOCK, 5 },
        { 3, PERF_COUNT_SW_PAGE_FAULTS, 2 },
    };
    struct buffer b;
    struct result r;
    size_t cpu = 0, counted = 0;
    buffer_init(&b, 1 << 16);
    put_pipe_start(&b);
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        put_event(&b, events[i].config, SYSTEM_SAMPLE_TYPE, events[i].id);
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        for (uint32_t sample = 0; sample < events[i].samples; sample++)
            put_system_sample(&b, events[i].id, 7, 1000 + 10 * i + sample, true);
    import_bytes(&r, buffer_span(&b), NULL);
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    for (size_t i = 0; i < t->samples.count; i++) {
        cpu += t->samples.kind[i] == SAMPLE_CPU;
        counted += t->samples.kind[i] == SAMPLE_EVENT;
        assert_int_equal(t->samples.weight[i], 1000);
    }
    assert_int_equal(cpu, 5);
    assert_int_equal(counted, 3);
    assert_string_equal(fact(&r, FACT_UNIT), "ns");
    char shown[256], left_out[256];
    snprintf(shown, sizeof shown, "samples of other events than %s are left out: ", fact(&r, FACT_EVENT));
    snprintf(left_out, sizeof left_out, "%s", fact(&r, FACT_EVENTS_LEFT_OUT));
    assert_non_null(strstr(left_out, " (2)"));
    assert_null(strstr(left_out, "(3)"));
    assert_ptr_equal(strstr(fact(&r, FACT_NOTES), shown), fact(&r, FACT_NOTES));
    trace_builder_done(&r.b);
    buffer_done(&b);
}

static void test_perf_script(void **state)
{
    (void)state;
    struct result r;
    char text[1024];
    import_text(&r, script, NULL);
    if (!r.ok)
        fail_msg("%s", r.err.what);
    const struct trace *t = &r.b.trace;
    assert_int_equal(t->samples.count, 3);
    assert_int_equal(t->samples.kind[0], SAMPLE_CPU);
    assert_int_equal(t->samples.kind[1], SAMPLE_EVENT);
    assert_int_equal(t->samples.kind[2], SAMPLE_CPU);
    assert_int_equal(t->samples.time_ns[0], 100000001000);
    assert_int_equal(t->samples.weight[0], 10101010);
    assert_int_equal(t->samples.cpu[0], 1);
    assert_int_equal(t->threads.count, 3);
    stack_text(t, t->samples.stack[0], text, sizeof text);
    assert_string_equal(text, "do_syscall_64([kernel])kernel nf_hook([nf_tables])kernel inner()native "
                              "write(libc.so.6)native void [App] N.T::M()[Tier1](perf-10.map)jit "
                              "System.String::Concat(System.Private.CoreLib)r2r Shop.Order.Pay()(Shop)jit "
                              "EEStartup(libcoreclr.so)runtime [unknown](memfd:doublemapper)jit");
    assert_string_equal(fact(&r, FACT_HOST), "box");
    assert_string_equal(fact(&r, FACT_EVENT), "cpu-clock");
    assert_string_equal(fact(&r, FACT_RATE_HZ), "99");
    assert_string_equal(fact(&r, FACT_COUNTED_EVENT), "page-faults");
    assert_string_equal(fact(&r, FACT_EVENTS_LEFT_OUT), "");
    for (size_t i = 1; i < t->locations.count; i++)
        assert_int_equal(t->locations.rows[i].resolver,
                         t->locations.rows[i].function ? RESOLVER_IMPORTED : RESOLVER_NONE);
    trace_builder_done(&r.b);

    import_text(&r, script, "page-faults");
    assert_true(r.ok);
    assert_int_equal(r.b.trace.samples.count, 1);
    trace_builder_done(&r.b);

    import_text(&r,
                "w 7/7 1.5: 3 faults: \n\t 1234 f (/x)\n\n"
                "w 7/7 1.6: 5 switches: \n\t 1234 f (/x)\n\n"
                "w 7/7 1.7: 7 cycles:u: \n\t 1234 f (/x)\n\n",
                NULL);
    assert_true(r.ok);
    assert_int_equal(r.b.trace.samples.count, 2);
    assert_int_equal(r.b.trace.samples.kind[0], SAMPLE_EVENT);
    assert_int_equal(r.b.trace.samples.kind[1], SAMPLE_CPU);
    assert_int_equal(r.b.trace.samples.weight[1], 7);
    assert_string_equal(fact(&r, FACT_EVENT), "cycles:u");
    assert_string_equal(fact(&r, FACT_COUNTED_EVENT), "faults");
    assert_string_equal(fact(&r, FACT_NOTES),
                        "samples of other events than cycles:u are left out: switches (1)");
    trace_builder_done(&r.b);

    import_text(&r, "w 7 1.5: 3 cycles: \n\t 1234 f (/x)\n", NULL);
    assert_true(r.ok);
    assert_non_null(strstr(fact(&r, FACT_NOTES), "only the thread"));
    trace_builder_done(&r.b);

    import_text(&r, script, "cycles");
    assert_false(r.ok);
    assert_int_equal(r.err.kind, ERROR_USAGE);
    trace_builder_done(&r.b);
}

/* Weights that are more than 2^63 together count as less: a sum of them is not a small number. */
static void test_large_weights(void **state)
{
    (void)state;
    struct result r;
    import_text(&r,
                "app 7/7 [000] 1.0: 9223372036854775807 cycles: \n\t 10 f (/x)\n\n"
                "app 7/7 [000] 1.1: 5 cycles: \n\t 10 f (/x)\n\n"
                "app 7/7 [000] 1.2: 18446744073709551615 cycles: \n\t 10 f (/x)\n\n",
                NULL);
    assert_true(r.ok);
    const struct trace_samples *s = &r.b.trace.samples;
    assert_int_equal(s->count, 3);
    assert_int_equal(s->weight[0], INT64_MAX / 3);
    assert_int_equal(s->weight[1], 5);
    assert_int_equal(s->weight[2], INT64_MAX / 3);
    assert_string_equal(fact(&r, FACT_NOTES),
                        "2 samples count as 3074457345618258602, as more would be beyond 2^63 together");
    trace_builder_done(&r.b);
}

/* As in a perf.data of the whole machine. */
static void test_perf_script_idle(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t samples;
        uint64_t duration_ns;
        const char *note;
    } cases[] = {
        { "swapper 0/0 [000] 1.0: 1 cpu-clock:HG: \n\tffffffff81001234 idle ([kernel.kallsyms])\n\n"
          "app 7/7 [000] 1.5: 1 cpu-clock:HG: \n\t 10 f (/x)\n\n"
          "swapper 0/0 [000] 2.0: 1 cpu-clock:HG: \n\tffffffff81001234 idle ([kernel.kallsyms])\n\n",
          1, 1000000000, "samples of idle CPUs are left out: 2" },
        { "swapper 0/0 [000] 1.0: 1 context-switches: \n\tffffffff81001234 idle ([kernel.kallsyms])\n\n", 1,
          0, "" },
        { "swapper 0/0 [000] 1.0: 1 cycles: \n\tffffffff81001234 f ([kernel.kallsyms])\n\t 10 f (/x)\n\n", 1,
          0, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct result r;
        uint64_t duration_ns = 0;
        import_text(&r, cases[i].text, NULL);
        trace_fact_number(&r.b.trace, FACT_DURATION_NS, &duration_ns);
        if (!r.ok || r.b.trace.samples.count != cases[i].samples || duration_ns != cases[i].duration_ns ||
            strcmp(fact(&r, FACT_NOTES), cases[i].note) != 0)
            fail_msg("%zu: %zu samples, '%s'", i, r.b.trace.samples.count, fact(&r, FACT_NOTES));
        trace_builder_done(&r.b);
    }
}

static void test_folded(void **state)
{
    (void)state;
    struct result r;
    char text[256];
    /* one line that is none, behind those that decide what the file is */
    struct buffer input;
    buffer_init(&input, 4096);
    buffer_string(&input, "main;work_[j];sys_write_[k] 12\n");
    for (unsigned i = 0; i < 30; i++)
        buffer_string(&input, "main 3\n");
    buffer_append(&input, "nonsense\n", sizeof "nonsense\n");
    import_text(&r, (const char *)input.data, NULL);
    buffer_done(&input);
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    assert_int_equal(t->samples.count, 31);
    assert_int_equal(t->samples.weight[0], 12);
    stack_text(t, t->samples.stack[0], text, sizeof text);
    assert_string_equal(text, "sys_write()kernel work()jit main()unknown");
    assert_int_equal(t->losses.count, 2);
    assert_int_equal(t->losses.rows[1].count, 1);
    assert_string_equal(fact(&r, FACT_UNIT), "samples");
    trace_builder_done(&r.b);
}

/* A line of another kind among those that decide what the file is. */
static void test_folded_bad_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t samples;    /* 0: it is refused */
        const char *words; /* a note, or in what is said of a refused one */
    } cases[] = {
        { "# made by hand\na;b 5\noops\nc;d 6\n", 2,
          "line 3 is left out: it is no folded stack ('a;b;c 12')" },
        { "oops\na;b 5\na 1\nbroken\r\n\r\nb 1\n", 3,
          "2 lines are left out, the first is line 1: they are no folded stacks ('a;b;c 12')" },
        { "a;b 5\noops\nmore\nand more\n", 0,
          "line 2 is no folded stack ('a;b;c 12'), as 3 of the first 4 are none: too many" },
        { "oops\nmore\n", 0, "it begins at byte 0 with 'oops.mor'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct result r;
        import_text(&r, cases[i].text, NULL);
        bool as_said = r.ok ? strcmp(fact(&r, FACT_NOTES), cases[i].words) == 0
                            : strstr(r.err.what, cases[i].words) != NULL;
        if (r.ok != (cases[i].samples > 0) || (r.ok && r.b.trace.samples.count != cases[i].samples) ||
            !as_said)
            fail_msg("%zu: %zu samples, '%s'", i, r.b.trace.samples.count,
                     r.ok ? fact(&r, FACT_NOTES) : r.err.what);
        trace_builder_done(&r.b);
    }
}

/* Of what is not taken as it stands nothing is silent. */
static void test_folded_counts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t samples;
        uint64_t weight, lost;
        const char *note;
    } cases[] = {
        { "a;b 9223372036854775807\n", 1, INT64_MAX, 0, "" },
        { "a;b 9223372036854775806\na;b 2\na 1\n", 2, INT64_MAX, 1,
          "1 lines have counts that are too large: all together may be 2^63 - 1" },
        { "a;b 18446744073709551615\na;b 5\n", 1, 5, 1,
          "1 lines have counts that are too large: all together may be 2^63 - 1" },
        { "a;b 5\na;b 99999999999999999999999\n", 1, 5, 1,
          "1 lines have counts that are too large: all together may be 2^63 - 1" },
        { "a;b 1.5\na 2.49\nb 3.0\n", 3, 7, 0, "2 counts with fractions are rounded" },
        { "a;b 18446744073709551615.5\nb 1\n", 1, 1, 1,
          "1 lines have counts that are too large: all together may be 2^63 - 1" },
        { "\xef\xbb\xbf"
          "a;b 5\n",
          1, 5, 0, "" },
        { "a;b_[k]  5 \r\n", 1, 5, 0, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct result r;
        uint64_t weight = 0;
        import_text(&r, cases[i].text, NULL);
        const struct trace *t = &r.b.trace;
        for (size_t k = 0; k < t->samples.count; k++)
            weight += t->samples.weight[k];
        uint64_t lost = t->losses.count > 1 ? t->losses.rows[1].count : 0;
        if (!r.ok || t->samples.count != cases[i].samples || weight != cases[i].weight ||
            lost != cases[i].lost || strcmp(fact(&r, FACT_NOTES), cases[i].note) != 0)
            fail_msg("%zu: %zu samples, '%s'", i, t->samples.count, fact(&r, FACT_NOTES));
        for (size_t k = 1; k < t->functions.count; k++)
            assert_int_equal(strlen(trace_string(t, t->functions.rows[k].name)), 1);
        trace_builder_done(&r.b);
    }
}

/* One byte in the middle, where nobody sees it. */
static void test_text_with_nul(void **state)
{
    (void)state;
    static const char lines[] = "main;work 12\nmain;work;read 3\nmain 4\n";
    struct buffer b;
    struct result r;
    buffer_init(&b, 4096);
    buffer_append(&b, "\xef\xbb\xbf", 3);
    buffer_string(&b, lines);
    b.data[33] = 0;
    import_bytes(&r, buffer_span(&b), NULL);
    assert_false(r.ok);
    assert_false(r.is_recognised);
    assert_non_null(strstr(r.err.what, "it holds a NUL at byte 33"));
    assert_null(strstr(r.err.what, "and not as"));
    trace_builder_done(&r.b);
    buffer_done(&b);
}

/* Deeper than a stack may be: the leaf's end is kept, and the stack says that it is cut. */
static void test_folded_deep(void **state)
{
    (void)state;
    struct result r;
    AUTO_FREE char *text = malloc(20000);
    size_t used = 0;
    for (unsigned i = 0; i < 1000; i++)
        used += (size_t)snprintf(text + used, 20000 - used, "%sf%u", i ? ";" : "", i);
    snprintf(text + used, 20000 - used, " 1\n");
    import_text(&r, text, NULL);
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    uint32_t stack = t->samples.stack[0];
    assert_int_equal(trace_stack_end(t, stack), STACK_TRUNCATED);
    const struct trace_location *leaf = &t->locations.rows[t->stacks.rows[stack].location];
    assert_string_equal(trace_string(t, t->functions.rows[leaf->function].name), "f999");
    trace_builder_done(&r.b);
}

static void test_unknown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted, *hint;
    } cases[] = {
        { "", "it is empty", "" },
        { "{\"traceEvents\":[]}", "it begins at byte 0 with '{\"traceE'", "what was exported is not read" },
        { "<!DOCTYPE html>", "it begins at byte 0", "what was exported is not read" },
        { "\x1f\x8b\x08\x08 gz", "it is packed by gzip", "gunzip -c FILE | clrperf report -" },
        { "PK\3\4\x14", "it is packed by zip", "perf.data.txt" },
        { "\x28\xb5\x2f\xfd\x24", "it is packed by zstd", "zstd -dc" },
        { "\xfd"
          "7zXZ",
          "it is packed by xz", "xz -dc" },
        { "PK\3", "it begins at byte 0", "" },
        { "\x7f"
          "ELF\2\1\1",
          "it begins at byte 0 with '.ELF...'", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct result r;
        import_text(&r, cases[i].text, NULL);
        if (r.ok || r.is_recognised || !strstr(r.err.what, cases[i].wanted) || !strstr(r.err.what, "/proc/"))
            fail_msg("%zu: %s", i, r.err.what);
        if (*cases[i].hint ? !strstr(r.err.hint, cases[i].hint) : *r.err.hint)
            fail_msg("%zu: %s", i, r.err.hint);
        trace_builder_done(&r.b);
    }
    struct result r;
    import_path(&r, "/nonexistent/perf.data", NULL);
    assert_false(r.ok);
    assert_int_equal(r.err.kind, ERROR_SYSTEM);
    trace_builder_done(&r.b);
    import_path(&r, "/", NULL);
    assert_false(r.ok);
    assert_int_equal(r.err.kind, ERROR_INPUT);
    trace_builder_done(&r.b);
}

/* What is not known to be whole is not shown as if it were. */
static void test_text_cut(void **state)
{
    (void)state;
#define WHOLE "app 7/7 1.5: 3 cycles: \n\t 10 leaf (/x)\n\t 20 root (/x)\n\n"
#define HEAD  "app 7/7 1.6: 4 cycles: \n"
    static const struct {
        const char *name, *text;
        size_t samples;
        const char *last; /* stack */
        enum stack_end end;
        const char *note;
    } cases[] = {
        { "whole", WHOLE HEAD "\t 10 leaf (/x)\n\n", 2, "leaf(x)native", STACK_WHOLE, "" },
        { "in a frame", WHOLE HEAD "\t 10 leaf (/x)\n\t 20 ro", 2, "leaf(x)native", STACK_TRUNCATED,
          "the text ends in the middle: callers may be missing in the last stack" },
        { "in a module", WHOLE HEAD "\t 10 leaf (/x)\n\t 20 root (/y (deleted)", 2, "leaf(x)native",
          STACK_TRUNCATED, "the text ends in the middle: callers may be missing in the last stack" },
        { "at a frame's end", WHOLE HEAD "\t 10 leaf (/x)\n\t 20 root (/x)", 2, "leaf(x)native root(x)native",
          STACK_WHOLE, "" },
        { "without the blank line", WHOLE HEAD "\t 10 leaf (/x)\n", 2, "leaf(x)native", STACK_WHOLE, "" },
        { "in the first frame", WHOLE HEAD "\t 10 le", 1, "leaf(x)native root(x)native", STACK_WHOLE,
          "the text ends in the middle: the last sample is left out" },
        { "behind the head", WHOLE HEAD, 1, "leaf(x)native root(x)native", STACK_WHOLE,
          "the text ends in the middle: the last sample is left out" },
        { "in the head", WHOLE "app 7/7 1.6: 4", 1, "leaf(x)native root(x)native", STACK_WHOLE,
          "the text ends in the middle: the last sample is left out" },
        { "behind a mark", "\xef\xbb\xbf" WHOLE, 1, "leaf(x)native root(x)native", STACK_WHOLE, "" },
        { "one line each, whole", "app 7/7 1.5: 3 cycles: 2000 f (/x)\n", 1, "f(x)native", STACK_WHOLE, "" },
        { "one line each", "app 7/7 1.5: 3 cycles: 2000 f (/x)\napp 7/7 1.6: 3 cycles: 2000 g (/x)", 2,
          "g(x)native", STACK_WHOLE, "" },
        { "in one line", "app 7/7 1.5: 3 cycles: 2000 f (/x)\napp 7/7 1.6: 3 cycles: 2000 g (/", 1,
          "f(x)native", STACK_WHOLE, "the text ends in the middle: the last sample is left out" },
    };
#undef WHOLE
#undef HEAD
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct result r;
        char text[256] = "";
        import_text(&r, cases[i].text, NULL);
        const struct trace *t = &r.b.trace;
        size_t count = t->samples.count;
        if (!r.ok || count != cases[i].samples || strcmp(fact(&r, FACT_NOTES), cases[i].note) != 0)
            fail_msg("%s: %zu samples, '%s'", cases[i].name, count, fact(&r, FACT_NOTES));
        stack_text(t, t->samples.stack[count - 1], text, sizeof text);
        if (strcmp(text, cases[i].last) != 0 ||
            trace_stack_end(t, t->samples.stack[count - 1]) != cases[i].end)
            fail_msg("%s: the last stack is %s", cases[i].name, text);
        trace_builder_done(&r.b);
    }
}

/* Also on a line's middle: every cut gives some samples or a clear error. */
static void test_text_cut_everywhere(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof script; size++) {
        char cut[sizeof script] = "";
        struct result r;
        memcpy(cut, script, size);
        import_text(&r, cut, NULL);
        if (!r.ok && r.is_recognised)
            fail_msg("%zu: %s", size, r.err.what);
        trace_builder_done(&r.b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perf_data),
        cmocka_unit_test(test_killed_recorder),
        cmocka_unit_test(test_perf_data_folder),
        cmocka_unit_test(test_many_kernel_frames),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_several_events),
        cmocka_unit_test(test_perf_script),
        cmocka_unit_test(test_large_weights),
        cmocka_unit_test(test_perf_script_idle),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_folded_bad_lines),
        cmocka_unit_test(test_folded_counts),
        cmocka_unit_test(test_text_with_nul),
        cmocka_unit_test(test_folded_deep),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_text_cut),
        cmocka_unit_test(test_text_cut_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
