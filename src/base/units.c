#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS 1000000000ull

/* Digits at *text, which moves behind them. Fails when there is none or the number is too large. */
static bool take_number(const char **text, uint64_t *out)
{
    const char *p = *text;
    uint64_t value = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    }
    *text = p;
    *out = value;
    return true;
}

bool units_parse_digits(struct span text, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (text.size)
        *out = value;
    return text.size != 0;
}

bool units_parse_count(const char *text, uint64_t *out)
{
    return units_parse_digits(span_of(text, strlen(text)), out);
}

/* `12` or `1.25`: the whole part, and the rest as a fraction of `scale`. */
static bool take_decimal(const char **text, uint64_t *whole, uint64_t *fraction, uint64_t *scale)
{
    if (!take_number(text, whole))
        return false;
    *fraction = 0;
    *scale = 1;
    if (**text != '.')
        return true;
    const char *p = *text + 1;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (*scale >= 1000000000u)
            continue;
        *fraction = *fraction * 10 + (uint64_t)(*p - '0');
        *scale *= 10;
    }
    *text = p;
    return true;
}

bool units_parse_percent(const char *text, double *out)
{
    uint64_t whole, fraction, scale;
    if (!take_decimal(&text, &whole, &fraction, &scale))
        return false;
    text += *text == '%';
    double percent = (double)whole + (double)fraction / (double)scale;
    if (*text || percent > 100)
        return false;
    *out = percent;
    return true;
}

static bool scaled(uint64_t whole, uint64_t fraction, uint64_t scale, uint64_t unit, uint64_t *sum)
{
    uint64_t value;
    uint64_t part = (uint64_t)((__uint128_t)fraction * unit / scale);
    return !__builtin_mul_overflow(whole, unit, &value) && !__builtin_add_overflow(value, part, &value) &&
           !__builtin_add_overflow(*sum, value, sum);
}

struct unit {
    const char *name;
    uint64_t size;
};

/* The longest unit that `*text` starts with; *text moves behind it. 0 when there is none. */
static uint64_t take_unit(const char **text, const struct unit *units)
{
    const struct unit *best = NULL;
    for (const struct unit *u = units; u->name; u++) {
        if (strncasecmp(*text, u->name, strlen(u->name)) == 0 &&
            (!best || strlen(u->name) > strlen(best->name)))
            best = u;
    }
    if (!best)
        return 0;
    *text += strlen(best->name);
    return best->size;
}

/* [dd:]hh:mm:ss[.fff], as the dotnet tools take it; also dd.hh:mm:ss */
static bool parse_clock(const char *text, uint64_t *out_ns)
{
    const char *seconds = strrchr(text, ':') + 1;
    bool has_days = strcspn(text, ".") < strcspn(text, ":");
    uint64_t parts[4], fraction = 0, scale = 1;
    size_t count = 0;
    do {
        if (!(text == seconds ? take_decimal(&text, &parts[count], &fraction, &scale)
                              : take_number(&text, &parts[count])))
            return false;
        count++;
    } while (count < 4 && (*text == ':' || (*text == '.' && count == 1)) && *text++);
    if (*text || count < 3 || (has_days && count < 4))
        return false;
    const uint64_t *p = parts + (count - 3);
    uint64_t hours = p[0];
    if (p[1] > 59 || p[2] > 59 || (count == 4 && hours > 23))
        return false;
    uint64_t sum = 0;
    if ((count == 4 && !scaled(parts[0], 0, 1, 86400 * SECOND_NS, &sum)) ||
        !scaled(hours, 0, 1, 3600 * SECOND_NS, &sum) ||
        !scaled(p[1] * 60 + p[2], fraction, scale, SECOND_NS, &sum))
        return false;
    *out_ns = sum;
    return true;
}

bool units_parse_duration(const char *text, uint64_t *out_ns)
{
    static const struct unit units[] = {
        { "ns", 1 },
        { "us", 1000 },
        { "ms", 1000000 },
        { "s", SECOND_NS },
        { "sec", SECOND_NS },
        { "m", 60 * SECOND_NS },
        { "min", 60 * SECOND_NS },
        { "h", 3600 * SECOND_NS },
        { "d", 86400 * SECOND_NS },
        { 0 },
    };
    if (strchr(text, ':'))
        return parse_clock(text, out_ns);
    uint64_t sum = 0;
    const char *start = text;
    do {
        uint64_t whole, fraction, scale;
        bool first = text == start;
        if (!take_decimal(&text, &whole, &fraction, &scale))
            return false;
        uint64_t unit = take_unit(&text, units);
        /* a number without unit is seconds, but only when it stands alone */
        if (unit == 0 && (*text || !first))
            return false;
        if (!scaled(whole, fraction, scale, unit ? unit : SECOND_NS, &sum))
            return false;
    } while (*text);
    *out_ns = sum;
    return true;
}

static bool parse_scaled(const char *text, const struct unit *units, uint64_t *out)
{
    uint64_t whole, fraction, scale, sum = 0;
    if (!take_decimal(&text, &whole, &fraction, &scale))
        return false;
    uint64_t unit = *text ? take_unit(&text, units) : 1;
    if (unit == 0 || *text || !scaled(whole, fraction, scale, unit, &sum))
        return false;
    *out = sum;
    return true;
}

bool units_parse_size(const char *text, uint64_t *out_bytes)
{
    static const struct unit units[] = {
        { "b", 1 },
        { "k", 1u << 10 },
        { "kb", 1u << 10 },
        { "kib", 1u << 10 },
        { "m", 1u << 20 },
        { "mb", 1u << 20 },
        { "mib", 1u << 20 },
        { "g", 1u << 30 },
        { "gb", 1u << 30 },
        { "gib", 1u << 30 },
        { "t", 1ull << 40 },
        { "tb", 1ull << 40 },
        { "tib", 1ull << 40 },
        { 0 },
    };
    return parse_scaled(text, units, out_bytes);
}

bool units_parse_rate(const char *text, uint64_t *out_per_second)
{
    static const struct unit units[] = { { "hz", 1 }, { "k", 1000 }, { "khz", 1000 }, { 0 } };
    const char *point = strchr(text, '.');
    if (point && !strpbrk(point, "kK") && strspn(point + 1, "0") != strspn(point + 1, "0123456789"))
        return false; /* a part of a time a second */
    return parse_scaled(text, units, out_per_second);
}

struct units_text units_duration(uint64_t ns)
{
    struct units_text out;
    uint64_t s = ns / SECOND_NS;
    /* the limits are where three digits round up to the next unit: %.3g would write 1e+03 */
    if (ns < 1000)
        snprintf(out.text, sizeof out.text, "%" PRIu64 " ns", ns);
    else if (ns < 999500)
        snprintf(out.text, sizeof out.text, "%.3g us", (double)ns / 1e3);
    else if (ns < 999500000)
        snprintf(out.text, sizeof out.text, "%.3g ms", (double)ns / 1e6);
    else if (s < 60)
        snprintf(out.text, sizeof out.text, "%.2f s", (double)ns / 1e9);
    else if (s < 3600)
        snprintf(out.text, sizeof out.text, "%" PRIu64 " m %02" PRIu64 " s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out.text, sizeof out.text, "%" PRIu64 " h %02" PRIu64 " m", s / 3600, s / 60 % 60);
    else
        snprintf(out.text, sizeof out.text, "%" PRIu64 " d %02" PRIu64 " h", s / 86400, s / 3600 % 24);
    return out;
}

struct units_text units_cpu_share(uint64_t cpu_ns, uint64_t of_ns)
{
    struct units_text share;
    if (cpu_ns > of_ns)
        snprintf(share.text, sizeof share.text, "%s of CPU time", units_duration(cpu_ns).text);
    else
        snprintf(share.text, sizeof share.text, "%.2f %% of one CPU",
                 of_ns ? (double)cpu_ns * 100 / (double)of_ns : 0);
    return share;
}

struct units_text units_size(uint64_t bytes)
{
    static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    struct units_text out;
    if (bytes < 1024) {
        snprintf(out.text, sizeof out.text, "%" PRIu64 " B", bytes);
        return out;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1024 && unit < 5; unit++)
        value /= 1024;
    snprintf(out.text, sizeof out.text,
             value < 10    ? "%.2f %s"
             : value < 100 ? "%.1f %s"
                           : "%.0f %s",
             value, names[unit]);
    return out;
}

struct units_text units_count(uint64_t count)
{
    struct units_text out;
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t at = 0;
    for (int i = 0; i < size; i++) {
        if (i && (size - i) % 3 == 0)
            out.text[at++] = ' ';
        out.text[at++] = digits[i];
    }
    out.text[at] = 0;
    return out;
}
