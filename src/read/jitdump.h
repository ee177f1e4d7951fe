/*
 * jitdump: the machine code a JIT announces in jit-<pid>.dump.
 *
 * Binary records, each with its size and a time. Specified in the Linux source,
 * tools/perf/Documentation/jitdump-specification.txt. Only code loads are read. A dump of .NET 10 may
 * end in a record that was cut short; it is left out.
 */
#ifndef CLRPERF_READ_JITDUMP_H
#define CLRPERF_READ_JITDUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/source.h"

enum { JITDUMP_NAME_MAX = 64 * 1024 };
/* Of the file, which may have holes and thus cost its owner nothing. */
#define JITDUMP_BYTES_MAX ((uint64_t)16 << 30)

struct jitdump_code {
    uint64_t record_off;        /* in the file */
    uint64_t time_ns;           /* CLOCK_MONOTONIC, as the writer says */
    uint64_t start, size_bytes; /* start + size_bytes does not wrap */
    struct span name;           /* valid during the call */
};

/* Return false to stop. */
typedef bool jitdump_code_fn(void *user, const struct jitdump_code *code);

struct jitdump_counts {
    uint64_t records, malformed;
    bool cut; /* the last record is not complete */
};

/* Whether the file starts as a jitdump of this byte order. */
bool jitdump_is(const struct source *file);
/*
 * Calls `emit` for each code load, in the order of the file. Ends at a record whose size makes no
 * sense: nothing tells where the next one starts. ERROR_LIMIT past JITDUMP_BYTES_MAX.
 */
bool jitdump_read(const struct source *file, jitdump_code_fn *emit, void *user, struct jitdump_counts *out,
                  struct error *err);
/* The code load at an offset that jitdump_read() gave; its name is in `bytes`. */
bool jitdump_code_at(const struct source *file, uint64_t record_off, struct buffer *bytes,
                     struct jitdump_code *out, struct error *err);

#endif
