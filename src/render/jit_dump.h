/*
 * jit_dump: jitted code with its bytes and source lines, for perf inject --jit.
 *
 * Specified in the Linux source, tools/perf/Documentation/jitdump-specification.txt; read by read/jitdump.c.
 * perf makes an ELF file of each method, as long as the code is in it.
 */
#ifndef CLRPERF_RENDER_JIT_DUMP_H
#define CLRPERF_RENDER_JIT_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "render/output.h"

struct jit_dump_line {
    uint64_t addr;    /* from here on */
    const char *file; /* as the compiler saw it */
    uint32_t line;    /* from 1 on */
};

struct jit_dump_method {
    uint64_t addr;
    struct span code; /* its bytes */
    const char *name;
    const struct jit_dump_line *lines; /* by address; none: not known */
    size_t line_count;
};

struct jit_dump {
    struct output *out;
    uint32_t pid;
    uint64_t time_ns, written; /* methods */
};

/*
 * `pid` as perf saw the process. `time_ns` (CLOCK_MONOTONIC): since when the code is there; what perf sampled
 * before has no names from it.
 */
void jit_dump_begin(struct jit_dump *dump, uint32_t pid, uint64_t time_ns, struct output *out);
void jit_dump_add(struct jit_dump *dump, const struct jit_dump_method *method);

#endif
