/*
 * perf_script: the text that `perf script` prints, line by line.
 *
 * A sample is a line "comm pid/tid [cpu] seconds: period event:", then a line "<TAB>address symbol+0xoff
 * (dso)" for each frame, leaf first, then a blank line. Every field but pid or tid may be missing (perf
 * script -F); without a callchain the frame stands behind the event on the same line. Not specified; the
 * printing code is tools/perf/builtin-script.c in the Linux source.
 */
#ifndef CLRPERF_READ_PERF_SCRIPT_H
#define CLRPERF_READ_PERF_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

/* Spans are borrowed from the line; absent ones are empty. */
struct perf_script_frame {
    uint64_t addr;    /* 0: not printed */
    struct span name; /* without "+0x12"; empty: "[unknown]" or not printed */
    struct span dso;  /* as printed, "[kernel.kallsyms]", "/lib/libc.so.6", "inlined" */
};

struct perf_script_event {
    struct span comm;
    struct span event; /* "cpu-clock", "sched:sched_switch" */
    uint64_t time_ns;
    uint64_t period;
    uint32_t pid, tid; /* the same when only one was printed: then it is the thread's */
    uint32_t cpu;
    bool has_time, has_period, has_cpu;
    bool has_both_ids; /* pid and tid */
    bool has_frame;    /* `frame` stood on the same line */
    struct perf_script_frame frame;
    uint64_t lost; /* samples, as a record says */
};

enum perf_script_line {
    PERF_SCRIPT_BLANK,
    PERF_SCRIPT_COMMENT, /* "# hostname : vm" */
    PERF_SCRIPT_EVENT,
    PERF_SCRIPT_FRAME,
    PERF_SCRIPT_RECORD, /* no sample: "comm pid time: PERF_RECORD_MMAP2 ..." of --show-mmap-events and the
                           like */
    PERF_SCRIPT_OTHER,  /* source lines and whatever else options add */
};

/* What a line without its end is; fills the struct of its kind, of a record the time and what was lost. */
enum perf_script_line perf_script_read_line(struct span line, struct perf_script_event *out_event,
                                            struct perf_script_frame *out_frame);

/* Does a text begin like this? */
bool perf_script_recognises(struct span head);

#endif
