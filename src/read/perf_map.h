/*
 * perf_map: the symbols a JIT leaves in /tmp/perf-<pid>.map.
 *
 * Text, one "START SIZE name" per line; START and SIZE in hex, with or without 0x; the name runs to
 * the end of the line. Specified in the Linux source, tools/perf/Documentation/jit-interface.txt.
 * The file grows while the process runs: the last line may be partial, and is left out. An address
 * may be reused, so the later line wins; the file is therefore read from its end.
 */
#ifndef CLRPERF_READ_PERF_MAP_H
#define CLRPERF_READ_PERF_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/source.h"

enum { PERF_MAP_LINE_MAX = 64 * 1024 };
/* Of one piece of code and of the file. */
#define PERF_MAP_CODE_BYTES_MAX ((uint64_t)1 << 30)
#define PERF_MAP_BYTES_MAX      ((uint64_t)4 << 30)

struct perf_map_line {
    uint64_t start, size_bytes; /* start + size_bytes does not wrap */
    struct span name;           /* valid during the call */
};

/* Return false to stop. */
typedef bool perf_map_line_fn(void *user, const struct perf_map_line *line);

struct perf_map_counts {
    uint64_t lines, malformed;
};

/*
 * Calls `emit` for each line, the last one first. Malformed and over-long lines are counted and
 * skipped. ERROR_LIMIT past PERF_MAP_BYTES_MAX.
 */
bool perf_map_read_backwards(const struct source *file, perf_map_line_fn *emit, void *user,
                             struct perf_map_counts *out, struct error *err);

#endif
