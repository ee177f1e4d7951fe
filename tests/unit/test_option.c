#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cli/option.h"

struct inner {
    struct option_list pids;
};

struct values {
    struct inner target;
    bool json, all;
    uint32_t top;
    const char *output;
    uint64_t duration_ns, limit_ns, size_bytes, rate;
};

static const struct option_spec inner_options[] = {
    { "pid", 'p', OPTION_STRING_LIST, offsetof(struct inner, pids), "the process", "PID" },
    { "process-id", 0, OPTION_STRING_LIST, offsetof(struct inner, pids), NULL },
    { 0 },
};

static const struct option_spec options[] = {
    { .kind = OPTION_GROUP, .offset = offsetof(struct values, target), .group = inner_options },
    { .kind = OPTION_HEADING, .help = "output" },
    { "json", 'j', OPTION_FLAG, offsetof(struct values, json), "print JSON" },
    { "all", 'a', OPTION_FLAG, offsetof(struct values, all), "all of them" },
    { "top", 'n', OPTION_COUNT, offsetof(struct values, top), "show N" },
    { "output", 'o', OPTION_STRING, offsetof(struct values, output), "write there", "FILE" },
    { "duration", 'd', OPTION_DURATION, offsetof(struct values, duration_ns), "how long" },
    { "limit", 'l', OPTION_TIME_LIMIT, offsetof(struct values, limit_ns), "until when" },
    { "buffer-size", 0, OPTION_SIZE, offsetof(struct values, size_bytes), "how much" },
    { "rate", 'F', OPTION_RATE, offsetof(struct values, rate), "how often" },
    { 0 },
};

/* Splits `line` at blanks and parses it; what points into it is valid until the next call. */
static bool parse(const char *line, struct values *values, struct option_rest *rest, struct error *err)
{
    static char text[256];
    static const char *argv[32];
    snprintf(text, sizeof text, "%s", line);
    int argc = 0;
    for (char *word = text; *word && argc < 31;) {
        size_t size = strcspn(word, " ");
        char *next = word + size + (word[size] != 0);
        word[size] = 0;
        argv[argc++] = word;
        word = next;
    }
    argv[argc] = NULL;
    *values = (struct values){ .top = 20 };
    return option_parse(options, argc, argv, values, rest, err);
}

static void test_all_kinds(void **state)
{
    (void)state;
    struct values v;
    struct option_rest rest;
    assert_true(
        parse("file -ja -n5 --output=x=y -d:1m --buffer-size 64k -F=99 -p 1,2 --pid 3 --process-id=4 - "
              "-- cmd -n 3",
              &v, &rest, NULL));
    assert_true(v.json && v.all);
    assert_int_equal(v.top, 5);
    assert_string_equal(v.output, "x=y");
    assert_int_equal(v.duration_ns, 60000000000);
    assert_int_equal(v.size_bytes, 65536);
    assert_int_equal(v.rate, 99);
    assert_int_equal(v.target.pids.count, 3);
    assert_string_equal(v.target.pids.items[0], "1,2");
    assert_string_equal(v.target.pids.items[2], "4");
    assert_int_equal(rest.arg_count, 2);
    assert_string_equal(rest.args[0], "file");
    assert_string_equal(rest.args[1], "-");
    assert_int_equal(rest.command_count, 3);
    assert_string_equal(rest.command[0], "cmd");
    assert_null(rest.command[3]);
    option_values_done(options, &v);
    assert_true(parse("", &v, &rest, NULL));
    assert_int_equal(v.top, 20);
    assert_null(rest.command);
}

/* A clock of zeros is how dotnet-trace says that there is no end. */
static void test_time_limit(void **state)
{
    (void)state;
    struct values v;
    struct option_rest rest;
    assert_true(parse("-l 2s", &v, &rest, NULL));
    assert_int_equal(v.limit_ns, 2000000000);
    assert_true(parse("-l 2s --limit 00:00:00:00 -d 0", &v, &rest, NULL));
    assert_int_equal(v.limit_ns, 0);
}

static const struct {
    const char *line;
    const char *what;
    const char *hint;
} wrong[] = {
    { "--outptu x", "there is no option '--outptu'", "did you mean --output?" },
    { "--durration=3", "there is no option '--durration'", "did you mean --duration?" },
    { "--buffer", "there is no option '--buffer'", "did you mean --buffer-size?" },
    { "--zzz", "there is no option '--zzz'", "--help lists the options" },
    { "-x", "there is no option '-x'", "--help lists the options" },
    { "-jx", "there is no option '-x'", "--help lists the options" },
    { "--json=1", "--json takes no value", "" },
    { "--top", "--top needs a value", "--help says which" },
    { "-o --", "-o needs a value", "--help says which" },
    { "-o --json", "-o needs a value", "if '--json' is it: -o=--json" },
    { "--top -j", "--top needs a value", "if '-j' is it: --top=-j" },
    { "-o --top=3", "-o needs a value", "if '--top=3' is it: -o=--top=3" },
    { "--top ten", "'ten' is no value for --top", "give a whole number, for example 20" },
    { "--top 4294967296", "'4294967296' is no value for --top", "give a whole number, for example 20" },
    { "-l 0", "'0' is no value for -l",
      "give a duration such as 500ms, 10s, 2m, 1h or 00:01:30; without one it goes on until Ctrl-C" },
    { "--limit 0s", "'0s' is no value for --limit",
      "give a duration such as 500ms, 10s, 2m, 1h or 00:01:30; without one it goes on until Ctrl-C" },
    { "-d soon", "'soon' is no value for -d", "give a duration such as 500ms, 10s, 2m, 1h or 00:01:30" },
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct values v;
        struct option_rest rest;
        struct error err = { 0 };
        assert_false(parse(wrong[i].line, &v, &rest, &err));
        assert_int_equal(err.kind, ERROR_USAGE);
        assert_string_equal(err.what, wrong[i].what);
        assert_string_equal(err.hint, wrong[i].hint);
        option_values_done(options, &v);
    }
}

static void test_help(void **state)
{
    (void)state;
    struct values v;
    struct option_rest rest;
    assert_true(parse("x --help --nonsense", &v, &rest, NULL));
    assert_true(rest.help);
    struct buffer out;
    buffer_init(&out, 4096);
    option_help(options, &out);
    buffer_u8(&out, 0);
    assert_non_null(strstr((char *)out.data, "  -p, --pid PID             the process\n"));
    assert_non_null(strstr((char *)out.data, "\noutput:\n  -j, --json"));
    assert_non_null(strstr((char *)out.data, "      --buffer-size SIZE    how much\n"));
    assert_null(strstr((char *)out.data, "process-id"));
    buffer_done(&out);
}

static void test_suggest(void **state)
{
    (void)state;
    static const char *const words[] = { "record", "report", "ps", "doctor" };
    assert_string_equal(option_suggest("recrod", words, 4), "record");
    assert_string_equal(option_suggest("reprot", words, 4), "report");
    assert_string_equal(option_suggest("sp", words, 4), "ps");
    assert_string_equal(option_suggest("doc", words, 4), "doctor");
    assert_null(option_suggest("flamegraph", words, 4));
    assert_null(option_suggest("", words, 4));
    /* two of four letters are another word */
    assert_null(option_suggest("rapt", (const char *const[]){ "part" }, 1));
}

static void test_complete(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 4096);
    option_complete(options, "--p", &out);
    assert_int_equal(out.size, 6);
    assert_memory_equal(out.data, "--pid\n", 6);
    buffer_clear(&out);
    option_complete(options, "--process", &out);
    assert_int_equal(out.size, 0);
    buffer_done(&out);
    assert_string_equal(option_find(options, "-p")->name, "pid");
    assert_string_equal(option_find(options, "--output")->name, "output");
    assert_null(option_find(options, "-pid"));
    assert_null(option_find(options, "--outputs"));
    assert_null(option_find(options, "-"));
    assert_null(option_find(options, "pid"));
}

static const char *given_besides(const char *line, const char *names)
{
    const struct values defaults = { .top = 20 };
    struct values values;
    struct option_rest rest;
    struct error err;
    assert_true(parse(line, &values, &rest, &err));
    const struct option_spec *found = option_given_besides(options, names, &values, &defaults);
    option_values_done(options, &values);
    return found ? found->name : NULL;
}

static void test_given_besides(void **state)
{
    (void)state;
    assert_null(given_besides("", ""));
    assert_null(given_besides("--json --top 20", "json"));
    assert_null(given_besides("--json -n 3 -p 1", "pid top json"));
    assert_string_equal(given_besides("--json", ""), "json");
    assert_string_equal(given_besides("-n 0", "json"), "top");
    assert_string_equal(given_besides("-p 1", "json top"), "pid");
    assert_string_equal(given_besides("-o x", "outputs output-file"), "output");
    assert_string_equal(given_besides("-F 9 -d 1s", "rates duration"), "rate");
    assert_string_equal(given_besides("-d 1s", "rate"), "duration");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_besides), cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_time_limit),    cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_help),          cmocka_unit_test(test_suggest),
        cmocka_unit_test(test_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
