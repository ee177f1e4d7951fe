/*
 * units: durations, sizes, counts and rates as people write them.
 *
 * Parsing takes the whole text or fails; out is untouched then. Numbers that do not fit 64 bits fail.
 */
#ifndef CLRPERF_BASE_UNITS_H
#define CLRPERF_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

/* Decimal digits only. */
bool units_parse_count(const char *text, uint64_t *out);
bool units_parse_digits(struct span text, uint64_t *out);
/* `250us 500ms 10s 2m 1h 1d 1h30m 1.5s`, a bare number is seconds, and `hh:mm:ss`, `dd:hh:mm:ss`,
 * `dd.hh:mm:ss`, `hh:mm:ss.fff`. */
bool units_parse_duration(const char *text, uint64_t *out_ns);
/* `4096 64k 16M 2G 1T`, in powers of 1024; `kB`, `KiB` and the like mean the same. */
bool units_parse_size(const char *text, uint64_t *out_bytes);
/* Events a second: `99`, `999Hz`, `4k`, `4kHz`; k is 1000. */
bool units_parse_rate(const char *text, uint64_t *out_per_second);
/* A share in percent, 0 to 100: `5`, `0.1`, `5%`. */
bool units_parse_percent(const char *text, double *out);

enum { UNITS_TEXT_MAX = 32 };

struct units_text {
    char text[UNITS_TEXT_MAX];
};

/* `950 ns`, `12.3 us`, `4.56 ms`, `7.80 s`, `2 m 05 s`, `3 h 07 m`, `5 d 02 h` */
struct units_text units_duration(uint64_t ns);
/*
 * `7.42 % of one CPU`: what CPU time was of the time it took. Of next to no time that says nothing, then it
 * is `6.4 ms of CPU time`.
 */
struct units_text units_cpu_share(uint64_t cpu_ns, uint64_t of_ns);
/* `512 B`, `1.50 KiB`, `23.4 MiB` */
struct units_text units_size(uint64_t bytes);
/* `1 234 567` */
struct units_text units_count(uint64_t count);

#endif
