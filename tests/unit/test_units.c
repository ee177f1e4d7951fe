#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/units.h"

typedef bool parse_fn(const char *text, uint64_t *out);

static const struct {
    parse_fn *parse;
    const char *text;
    bool ok;
    uint64_t value;
} parse_cases[] = {
    { units_parse_count, "0", true, 0 },
    { units_parse_count, "18446744073709551615", true, UINT64_MAX },
    { units_parse_count, "18446744073709551616", false, 0 },
    { units_parse_count, "", false, 0 },
    { units_parse_count, "-1", false, 0 },
    { units_parse_count, "1k", false, 0 },
    { units_parse_duration, "10", true, 10000000000 },
    { units_parse_duration, "500ms", true, 500000000 },
    { units_parse_duration, "10s", true, 10000000000 },
    { units_parse_duration, "1.5s", true, 1500000000 },
    { units_parse_duration, "0.25", true, 250000000 },
    { units_parse_duration, "2m", true, 120000000000 },
    { units_parse_duration, "1h30m", true, 5400000000000 },
    { units_parse_duration, "3us", true, 3000 },
    { units_parse_duration, "7ns", true, 7 },
    { units_parse_duration, "00:01:30", true, 90000000000 },
    { units_parse_duration, "01:00:00:10", true, 86410000000000 },
    { units_parse_duration, "00:00:00:02", true, 2000000000 },
    { units_parse_duration, "1.00:00:10", true, 86410000000000 },
    { units_parse_duration, "00:00:01.5", true, 1500000000 },
    { units_parse_duration, "0.00:00:00.250", true, 250000000 },
    { units_parse_duration, "1.02:03", false, 0 },
    { units_parse_duration, "1.2.3:04:05", false, 0 },
    { units_parse_duration, "00:00.5:01", false, 0 },
    { units_parse_duration, "00:00:01.", false, 0 },
    { units_parse_duration, "00:01:", false, 0 },
    { units_parse_duration, "1:30", false, 0 },
    { units_parse_duration, "00:60:00", false, 0 },
    { units_parse_duration, "1:2:3:4:5", false, 0 },
    { units_parse_duration, "00:00:1x", false, 0 },
    { units_parse_duration, "", false, 0 },
    { units_parse_duration, "s", false, 0 },
    { units_parse_duration, "10s5", false, 0 },
    { units_parse_duration, "0h30", false, 0 },
    { units_parse_duration, "0", true, 0 },
    { units_parse_duration, "10 s", false, 0 },
    { units_parse_duration, "-5s", false, 0 },
    { units_parse_duration, "99999999999999999999s", false, 0 },
    { units_parse_duration, "18446744074s", false, 0 },
    { units_parse_duration, "1.s", false, 0 },
    { units_parse_size, "4096", true, 4096 },
    { units_parse_size, "64k", true, 65536 },
    { units_parse_size, "16M", true, 16777216 },
    { units_parse_size, "1.5GiB", true, 1610612736 },
    { units_parse_size, "16777216T", false, 0 },
    { units_parse_size, "16x", false, 0 },
    { units_parse_rate, "999", true, 999 },
    { units_parse_rate, "99Hz", true, 99 },
    { units_parse_rate, "4kHz", true, 4000 },
    { units_parse_rate, "fast", false, 0 },
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(parse_cases); i++) {
        uint64_t value = 0;
        bool ok = parse_cases[i].parse(parse_cases[i].text, &value);
        if (ok != parse_cases[i].ok || value != parse_cases[i].value)
            fail_msg("'%s': %d %llu", parse_cases[i].text, ok, (unsigned long long)value);
    }
}

static const struct {
    const char *text;
    bool ok;
    double value;
} percent_cases[] = {
    { "0", true, 0 },    { "5", true, 5 },     { "0.125", true, 0.125 },
    { "5%", true, 5 },   { "100", true, 100 }, { "100.1", false, 0 },
    { "-1", false, 0 },  { "", false, 0 },     { "%", false, 0 },
    { "5%%", false, 0 }, { "nan", false, 0 },  { "1e1", false, 0 },
    { "5 %", false, 0 }, { "5.", false, 0 },   { "99999999999999999999", false, 0 },
};

static void test_percent(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(percent_cases); i++) {
        double value = 0;
        bool ok = units_parse_percent(percent_cases[i].text, &value);
        if (ok != percent_cases[i].ok || value < percent_cases[i].value || value > percent_cases[i].value)
            fail_msg("'%s': %d %g", percent_cases[i].text, ok, value);
    }
}

static void test_format(void **state)
{
    (void)state;
    assert_string_equal(units_duration(950).text, "950 ns");
    assert_string_equal(units_duration(12300000).text, "12.3 ms");
    assert_string_equal(units_duration(999499).text, "999 us");
    assert_string_equal(units_duration(999999).text, "1 ms");
    assert_string_equal(units_duration(999499999).text, "999 ms");
    assert_string_equal(units_duration(999600000).text, "1.00 s");
    assert_string_equal(units_duration(7800000000).text, "7.80 s");
    assert_string_equal(units_duration(125000000000).text, "2 m 05 s");
    assert_string_equal(units_duration(UINT64_MAX).text, "213503 d 23 h");
    assert_string_equal(units_cpu_share(74200000, 1000000000).text, "7.42 % of one CPU");
    assert_string_equal(units_cpu_share(0, 0).text, "0.00 % of one CPU");
    assert_string_equal(units_cpu_share(6430000, 1000000).text, "6.43 ms of CPU time");
    assert_string_equal(units_size(512).text, "512 B");
    assert_string_equal(units_size(1536).text, "1.50 KiB");
    assert_string_equal(units_size(UINT64_MAX).text, "16.0 EiB");
    assert_string_equal(units_count(7).text, "7");
    assert_string_equal(units_count(1234567).text, "1 234 567");
    assert_string_equal(units_count(UINT64_MAX).text, "18 446 744 073 709 551 615");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_parse), cmocka_unit_test(test_percent),
                                        cmocka_unit_test(test_format) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
