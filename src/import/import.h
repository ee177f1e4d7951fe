/*
 * import: fills a trace from a file that another tool made.
 *
 * What a file is, is decided by its content: `perf.data` (file or pipe layout), the text of
 * `perf script`, folded stacks, nettrace and NetPerf.
 */
#ifndef CLRPERF_IMPORT_IMPORT_H
#define CLRPERF_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "read/byte_stream.h"
#include "trace/builder.h"

/* How much of the events of a type is kept. */
enum import_want {
    IMPORT_NOTHING,
    IMPORT_COUNTS, /* how many there are, in the rows of their types: neither samples nor methods' names come
                      of them */
    IMPORT_EVENTS, /* without payloads */
    IMPORT_COLLECTIONS, /* with payloads, but nothing of threads that were stopped for anything else */
    IMPORT_PAYLOADS,
};

typedef enum import_want import_wants_fn(const void *user, const char *provider, uint32_t event_id);

/*
 * The events of a part of a file's time, and at most so many: samples are not taken then. For files that are
 * larger than memory; formats without events ignore it.
 */
struct import_part {
    uint64_t from_ns, to_ns; /* of the file's clock; to_ns 0: to its end */
    size_t events_max;
    bool overflowed;            /* there were more, which were left out */
    struct event_course course; /* when all of them came, as type 0; the caller's to free */
};

struct perf_sample;

/* What the samples of a perf.data are of. */
struct import_machine {
    const char *arch, *kernel; /* as uname(2) says; "" when the file does not */
    uint64_t registers;        /* in a sample, by asm/perf_regs.h */
};

/*
 * Finds the user frames of samples that carry registers and stack bytes instead: `perf record --call-graph
 * dwarf` leaves that to the reader. Calls come in the order of the file.
 */
struct import_unwinder {
    /* NULL when samples of that machine cannot be unwound. */
    void *(*open)(struct trace_builder *b, const struct import_machine *machine);
    /* Something was mapped, which the trace has already. */
    void (*mapped)(void *unwinder, uint32_t process, uint64_t addr);
    /* Sets the user frames and the end of `raw`, valid until the next one; false when there is no telling. */
    bool (*run)(void *unwinder, uint32_t process, const struct perf_sample *sample, struct raw_sample *raw);
    void (*close)(void *unwinder);
};

struct import_options {
    /* Which event's samples to take, by name; NULL: the first that has callchains. */
    const char *event;
    /* Of a file of events: asked once for each type of them. NULL: everything is kept. */
    import_wants_fn *wants;
    const void *user;
    struct import_part *part; /* NULL: everything */
    bool runs; /* what a sampler saw again and again may be one row (trace.h: struct sample_run) */
    const struct import_unwinder *unwinder; /* NULL: stack bytes are passed over */
};

/* For reports of samples: what is said of collections besides. */
import_wants_fn import_wants_samples;
/* For reports of events: all of one that is looked at. What a sampler tells is counted, not made samples of.
 */
enum import_want import_want_event(const char *provider, bool is_looked_at);

/*
 * Reads `path`, or standard input for "-", into a builder without rows. Fails with ERROR_INPUT, naming
 * the file and what was expected, when the content is none of the formats; *out_recognised says whether it
 * was one (also when reading it failed later). Damage further in is counted in the trace: losses, gaps and
 * FACT_NOTES.
 */
bool import_open(const char *path, const struct import_options *options, struct trace_builder *b,
                 bool *out_recognised, struct error *err);

/* In two steps, for who has a format of its own to look for. Errors of the second do not name the file. */
bool import_open_stream(const char *path, int *out_fd /* owned; -1: none is ours */, struct byte_stream *out,
                        struct error *err);
bool import_stream(struct byte_stream *stream, const struct import_options *options, struct trace_builder *b,
                   bool *out_recognised, struct error *err);
/* "standard input" for "-" */
const char *import_shown_path(const char *path);

#endif
