/*
 * Every export format on the hand-made profiles, compared with tests/unit/golden/export/. After a
 * wanted change: export_fixture small small.folded ..., then look at the difference.
 */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/source.h"
#include "profile_fixture.h"
#include "render/export_format.h"
#include "render/folded.h"
#include "render/perf_text.h"

typedef void fixture_fn(struct profile *p);

static const struct {
    const char *name;
    fixture_fn *build;
} fixtures[] = {
    { "small", profile_fixture_small },
    { "nasty", profile_fixture_nasty },
    { "empty", profile_fixture_empty },
};

static const char *const extensions[] = { ".folded", ".speedscope.json", ".pb", ".perf.txt", ".firefox.json",
                                          ".json",   ".chromium.json" };

static void export_to(struct buffer *into, const char *path, const struct profile *p,
                      const struct export_options *options)
{
    struct output out;
    struct error err = { 0 };
    output_over_buffer(&out, into);
    assert_true(export_profile(export_format_for_path(path), p, options, &out, &err));
    assert_true(output_close(&out, &err));
}

static void load_golden(const char *file, struct buffer *into)
{
    char path[512];
    struct source source;
    struct error err = { 0 };
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR "/export", file);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("no %s", path);
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &source, &err));
    assert_true(source.size == 0 || source_load(&source, 0, source.size, into, &err));
}

static void test_goldens(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fixtures); i++) {
        struct profile p;
        fixtures[i].build(&p);
        for (size_t k = 0; k < ARRAY_LEN(extensions); k++) {
            char file[64];
            struct buffer got, wanted;
            buffer_init(&got, 1 << 20);
            buffer_init(&wanted, 1 << 20);
            snprintf(file, sizeof file, "%s%s", fixtures[i].name, extensions[k]);
            export_to(&got, file, &p, &(struct export_options){ 0 });
            load_golden(file, &wanted);
            if (!span_equals(buffer_span(&got), buffer_span(&wanted)))
                fail_msg("%s differs from its golden file:\n%.*s", file, (int)got.size, (char *)got.data);
            buffer_done(&got);
            buffer_done(&wanted);
        }
        profile_fixture_done(&p);
    }
}

/* Managed code is told by its assembly's ending; what perf calls the places of jitted code stays. */
static void test_perf_modules(void **state)
{
    (void)state;
    static const struct {
        const char *module, *shown;
        enum code_kind kind;
    } cases[] = {
        { "shop", "(jitted/shop.dll)" },
        { "shop", " (shop.dll)", CODE_R2R },
        { "perf-tools", "(jitted/perf-tools.dll)" },
        { "", "([unknown])" },
        { "perf-12.map", "(perf-12.map)" },
        { "jitted-12-3.so", "(jitted-12-3.so)" },
        { "[JIT] tid 12", "([JIT]_tid_12)" },
        { "memfd:doublemapper", "(memfd:doublemapper)" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct profile_frame frames[] = {
            { 0 },
            { .name = "M", .module = cases[i].module, .kind = cases[i].kind ? cases[i].kind : CODE_JIT }
        };
        const struct profile_thread threads[] = { { 0 },
                                                  { .pid = 1, .tid = 1, .name = "t", .process_name = "p" } };
        const struct profile_process processes[] = { { 0 }, { .pid = 1, .name = "p" } };
        const struct fixture_sample sample = { .weight = 1, .thread = 1, .path = { 1 } };
        const struct fixture fixture = { frames, 2, threads, 2, processes, 2, &sample, 1 };
        struct profile p;
        struct buffer got;
        profile_fixture_build(&fixture, &p);
        buffer_init(&got, 1 << 20);
        export_to(&got, "x.perf.txt", &p, &(struct export_options){ 0 });
        buffer_u8(&got, 0);
        if (!strstr((const char *)got.data, cases[i].shown))
            fail_msg("no %s in:\n%s", cases[i].shown, (const char *)got.data);
        buffer_done(&got);
        profile_fixture_done(&p);
    }
}

static void assert_folded(const struct profile *p, struct export_options options, const char *wanted)
{
    struct buffer got;
    buffer_init(&got, 1 << 20);
    export_to(&got, "x.folded", p, &options);
    buffer_u8(&got, 0);
    assert_string_equal(got.data, wanted);
    buffer_done(&got);
}

static void test_folded_options(void **state)
{
    (void)state;
    struct profile p;
    profile_fixture_small(&p);
    assert_folded(&p, (struct export_options){ .threads = true, .modules = true, .annotate = true },
                  "shop;shop!Shop.Program.Main(String[])_[j];System.Private.CoreLib!System.String.Concat("
                  "String, String)_[j] 2\n"
                  "shop;shop!Shop.Program.Main(String[])_[j];shop!Shop.Orders+Line.Total()_[j];[write "
                  "barrier]_[n] 1\n"
                  "shop;shop!Shop.Program.Main(String[])_[j];shop!Shop.Orders+Line.Total()_[j];shop!Shop."
                  "Orders+Line.Total()_[j];libcoreclr.so!0x2f3a10_[n];[kernel]!do_syscall_64_[k] 1\n"
                  ".NET_TP_Worker 1\n"
                  ".NET_TP_Worker;libc.so.6!clone3_[n];libcoreclr.so!0x2f3a10_[n] 1\n"
                  ".NET_TP_Worker;libc.so.6!clone3_[n];libcoreclr.so!0x2f3a10_[n];[kernel]!do_syscall_64_[k] "
                  "1\n"
                  "price_worker;shop!Shop.Program.Main(String[])_[j];System.Private.CoreLib!System.String."
                  "Concat(String, String)_[j] 1\n");
    profile_fixture_done(&p);
}

/* What was not taken at a rate has its weight for a number: a wait of 10 ms is not "1". */
static void test_folded_weights(void **state)
{
    (void)state;
    const struct {
        double rate_hz;
        const char *unit;
        const char *wanted;
    } cases[] = {
        { 100, "ns", "shop;f 2\n" },   { 0, "ns", "shop;f 30\n" },      { 0, "bytes", "shop;f 30\n" },
        { 0, "count", "shop;f 30\n" }, { 0, "samples", "shop;f 30\n" },
    };
    static const struct profile_frame frames[] = { { 0 }, { .name = "f", .module = "" } };
    static const struct profile_thread threads[] = { { 0 }, { .name = "t", .process_name = "shop" } };
    static const struct fixture_sample samples[] = { { 1, 10, 1, 0, { 1 } }, { 2, 20, 1, 0, { 1 } } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct profile p;
        profile_fixture_build(&(struct fixture){ frames, 2, threads, 2, NULL, 0, samples, 2 }, &p);
        p.rate_hz = cases[i].rate_hz;
        p.weight_unit = cases[i].unit;
        assert_folded(&p, (struct export_options){ 0 }, cases[i].wanted);
        profile_fixture_done(&p);
    }
}

/* Threads side by side: what each did in a slice of the time is together, and nothing is lost of it. */
static void test_speedscope_slices(void **state)
{
    (void)state;
    enum { SAMPLES = 20000, SLICES = 1000 };
    static const struct profile_frame frames[] = { { 0 },
                                                   { .name = "f", .module = "" },
                                                   { .name = "g", .module = "" } };
    static const struct profile_thread threads[] = { { 0 },
                                                     { .name = "t", .process_name = "shop" },
                                                     { .name = "u", .process_name = "shop" } };
    static struct fixture_sample samples[SAMPLES];
    struct profile p;
    struct buffer got;
    for (uint32_t i = 0; i < SAMPLES; i++)
        samples[i] = (struct fixture_sample){ 1000 + i, 10, 1 + i % 2, 0, { 1 + i % 2 } };
    profile_fixture_build(&(struct fixture){ frames, 3, threads, 3, NULL, 0, samples, SAMPLES }, &p);
    buffer_init(&got, 1 << 20);
    export_to(&got, "x.speedscope.json", &p, &(struct export_options){ 0 });
    buffer_u8(&got, 0);
    char *all = strstr((char *)got.data, "\"All threads\""), *end = strstr(all, "\n{\"type\"");
    assert_non_null(end);
    *end = 0;
    assert_non_null(strstr(all, "\"endValue\":200000,"));
    uint64_t runs = 0, weight = 0, runs_weight = 0;
    for (const char *at = strstr(all, "\"samples\":["); (at = strpbrk(at + 1, "01")) && at[1] == ']'; runs++)
        assert_true(at[-1] == '[');
    for (char *at = strstr(all, "\"weights\":[") + 10;
         *at != ']' && (weight = strtoull(at + 1, &at, 10)) != 0;)
        runs_weight += weight;
    assert_in_range(runs, SLICES, 2 * SLICES);
    assert_int_equal(runs_weight, 10 * SAMPLES);
    buffer_done(&got);
    profile_fixture_done(&p);
}

static void test_firefox_weights(void **state)
{
    (void)state;
    const struct {
        double rate_hz;
        const char *unit, *wanted;
    } cases[] = {
        { 100, "ns", "\"weight\":null,\"weightType\":\"samples\",\"threadCPUDelta\":[10000,1500]}" },
        { 100, "count", "\"weight\":null,\"weightType\":\"samples\"}" },
        { 0, "ns", "\"weightType\":\"tracing-ms\",\"weight\":[10.000,1.500]}" },
        { 0, "bytes", "\"weightType\":\"bytes\",\"weight\":[10000000,1500000]}" },
        { 0, "samples", "\"weightType\":\"samples\",\"weight\":[10000000,1500000]}" },
    };
    static const struct profile_frame frames[] = { { 0 }, { .name = "f", .module = "" } };
    static const struct profile_thread threads[] = { { 0 }, { .name = "t", .process_name = "shop" } };
    static const struct fixture_sample samples[] = { { 1, 10000000, 1, 0, { 1 } },
                                                     { 2, 1500000, 1, 0, { 1 } } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct profile p;
        struct buffer got;
        buffer_init(&got, 1 << 20);
        profile_fixture_build(&(struct fixture){ frames, 2, threads, 2, NULL, 0, samples, 2 }, &p);
        p.rate_hz = cases[i].rate_hz;
        p.weight_unit = cases[i].unit;
        export_to(&got, "x.firefox.json", &p, &(struct export_options){ 0 });
        buffer_u8(&got, 0);
        if (!strstr((char *)got.data, cases[i].wanted))
            fail_msg("%s at %g Hz: %s", cases[i].unit, cases[i].rate_hz, (char *)got.data);
        buffer_done(&got);
        profile_fixture_done(&p);
    }
}

/* A capture's rate is a text that anybody may have written: what JSON has no number for is null. */
static void test_rates_that_are_no_numbers(void **state)
{
    (void)state;
    static const double rates[] = { HUGE_VAL, NAN, 1e-320 };
    static const char *const paths[] = { ".json", ".firefox.json", ".html", ".pb" };
    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
            struct profile p;
            struct buffer text;
            profile_fixture_small(&p);
            p.rate_hz = rates[i];
            buffer_init(&text, 1 << 24);
            export_to(&text, paths[k], &p, &(struct export_options){ 0 });
            buffer_u8(&text, 0);
            if (strcmp(paths[k], ".pb") != 0) {
                assert_null(strstr((char *)text.data, ":inf"));
                assert_null(strstr((char *)text.data, ":nan"));
                assert_null(strstr((char *)text.data, ":-nan"));
            }
            buffer_done(&text);
            profile_fixture_done(&p);
        }
    }
}

static uint64_t sum_of_lines(const struct buffer *text)
{
    uint64_t sum = 0, number = 0;
    for (size_t i = 0; i < text->size; i++) {
        uint8_t c = text->data[i];
        if (c == '\n')
            sum += number;
        number = c >= '0' && c <= '9' ? number * 10 + (c - '0') : 0;
    }
    return sum;
}

static void test_large_profile_keeps_its_samples(void **state)
{
    (void)state;
    struct profile p;
    struct buffer got;
    profile_fixture_large(&p, 20000);
    buffer_init(&got, SIZE_MAX);
    export_to(&got, "x.folded", &p, &(struct export_options){ 0 });
    assert_int_equal(sum_of_lines(&got), 20000);
    buffer_done(&got);
    profile_fixture_done(&p);
}

/* Passes all fields of a message by; each must have one of the wire types profile.proto uses. */
static uint32_t next_field(struct cursor *c, uint64_t *value, struct span *bytes)
{
    uint32_t tag = cursor_varuint32(c);
    *bytes = (struct span){ 0 };
    *value = cursor_varuint64(c);
    assert_true((tag & 7) == 0 || (tag & 7) == 2);
    if ((tag & 7) == 2)
        *bytes = cursor_bytes(c, *value);
    assert_true(cursor_ok(c));
    return tag >> 3;
}

static void test_pprof_refers_to_what_it_has(void **state)
{
    (void)state;
    struct profile p;
    struct buffer got;
    uint64_t value, samples = 0, weight = 0;
    uint32_t locations = 0, functions = 0, strings = 0;
    struct span bytes;
    profile_fixture_small(&p);
    buffer_init(&got, 1 << 20);
    export_to(&got, "x.pb", &p, &(struct export_options){ 0 });
    for (struct cursor c = cursor_over(buffer_span(&got)); cursor_left(&c) > 0;) {
        uint32_t field = next_field(&c, &value, &bytes);
        locations += field == 4;
        functions += field == 5;
        if (field == 6 && strings++ == 0)
            assert_int_equal(bytes.size, 0); /* string_table[0] is "" */
        if (field != 2)
            continue;
        for (struct cursor s = cursor_over(bytes); cursor_left(&s) > 0;) {
            if (next_field(&s, &value, &bytes) != 2)
                continue;
            struct cursor values = cursor_over(bytes);
            samples += cursor_varuint64(&values);
            weight += cursor_varuint64(&values);
            assert_int_equal(cursor_left(&values), 0);
        }
    }
    assert_int_equal(samples, p.counts.samples);
    assert_int_equal(weight, p.counts.weight);
    /* one sample has no stack, which is a location of its own */
    assert_int_equal(locations, p.frame_count);
    assert_int_equal(functions, p.frame_count);
    buffer_done(&got);
    profile_fixture_done(&p);
}

/* Folded stacks of others: a line stands for as many samples as it counts, and there is no other weight. */
static void test_pprof_counts_lines(void **state)
{
    (void)state;
    static const struct profile_frame frames[] = { { 0 }, { .name = "f", .module = "" } };
    static const struct profile_thread threads[] = { { 0 }, { .name = "t", .process_name = "shop" } };
    static const struct fixture_sample samples[] = { { 1, 3, 1, 0, { 1 } }, { 2, 5, 1, 0, { 1 } } };
    struct profile p;
    struct buffer got;
    uint64_t value;
    struct span bytes = { 0 };
    profile_fixture_build(&(struct fixture){ frames, 2, threads, 2, NULL, 0, samples, 2 }, &p);
    p.weight_unit = "samples";
    p.weights_are_samples = true;
    buffer_init(&got, 1 << 20);
    export_to(&got, "x.pb", &p, &(struct export_options){ 0 });
    struct cursor c = cursor_over(buffer_span(&got));
    while (next_field(&c, &value, &bytes) != 2)
        ;
    struct cursor sample = cursor_over(bytes);
    while (next_field(&sample, &value, &bytes) != 2)
        ;
    struct cursor values = cursor_over(bytes);
    assert_int_equal(cursor_varuint64(&values), 8);
    assert_int_equal(cursor_left(&values), 0);
    buffer_done(&got);
    profile_fixture_done(&p);
}

static void test_every_format_reports_a_full_sink(void **state)
{
    (void)state;
    size_t count;
    const struct export_format *formats = export_formats(&count);
    struct profile p;
    profile_fixture_nasty(&p);
    for (size_t i = 0; i < count; i++) {
        /* what is written from a trace has a test of its own */
        for (size_t ceiling = 0; formats[i].write && ceiling < 100; ceiling += 33) {
            struct buffer memory;
            struct output out;
            struct error err = { 0 };
            buffer_init(&memory, ceiling);
            output_over_buffer(&out, &memory);
            bool ok = export_profile(&formats[i], &p, &(struct export_options){ 0 }, &out, &err);
            ok = output_close(&out, ok ? &err : NULL) && ok;
            if (ok || err.kind != ERROR_LIMIT)
                fail_msg("%s at %zu bytes", formats[i].extension, ceiling);
            buffer_done(&memory);
        }
    }
    profile_fixture_done(&p);
}

static const struct {
    const char *path, *name;
    bool gzip;
} path_cases[] = {
    { "a.json", "json", false },
    { "a.speedscope.json", "speedscope", false },
    { "a.firefox.json", "firefox", false },
    { "a.firefox.json.gz", "firefox", true },
    { "dir.d/A.FOLDED", "folded", false },
    { "a.collapsed", "folded", false },
    { "a.pb.gz", "pprof", true },
    { "a.pb", "pprof", false },
    { "a.perf.txt", "perf", false },
    { "a.txt", NULL, false },
    { "json", NULL, false },
    { "", NULL, false },
    { "a.json/b", NULL, false },
};

static void test_format_for_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(path_cases); i++) {
        const struct export_format *format = export_format_for_path(path_cases[i].path);
        if (!format != !path_cases[i].name)
            fail_msg("'%s'", path_cases[i].path);
        if (format) {
            assert_string_equal(format->name, path_cases[i].name);
            assert_int_equal(format->gzip, path_cases[i].gzip);
        }
    }
    assert_string_equal(export_format_by_name("pprof")->extension, ".pb.gz");
    /* an ending is a name, too */
    assert_string_equal(export_format_by_name("perf.txt")->name, "perf");
    assert_string_equal(export_format_by_name("speedscope.json")->name, "speedscope");
    assert_false(export_format_by_name("pb")->gzip);
    assert_string_equal(export_format_by_name("json")->extension, ".json");
    assert_null(export_format_by_name("nope"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_perf_modules),
        cmocka_unit_test(test_folded_options),
        cmocka_unit_test(test_folded_weights),
        cmocka_unit_test(test_speedscope_slices),
        cmocka_unit_test(test_firefox_weights),
        cmocka_unit_test(test_large_profile_keeps_its_samples),
        cmocka_unit_test(test_rates_that_are_no_numbers),
        cmocka_unit_test(test_pprof_refers_to_what_it_has),
        cmocka_unit_test(test_pprof_counts_lines),
        cmocka_unit_test(test_every_format_reports_a_full_sink),
        cmocka_unit_test(test_format_for_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
