/*
 * perf_data: the records of a perf.data file or of `perf record -o -`, in the order of their times.
 *
 * Specified in the Linux source, tools/perf/Documentation/perf.data-file-format.txt. Compressed records
 * are unpacked, hardware trace (AUX) is passed over. A file that was not closed (its size of data is 0)
 * or that is cut is read as far as it goes: every whole record counts.
 */
#ifndef CLRPERF_READ_PERF_DATA_H
#define CLRPERF_READ_PERF_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "read/byte_stream.h"
#include "read/perf_header.h"
#include "read/perf_record.h"

enum {
    /* Longest look ahead that reading needs of its stream. */
    PERF_DATA_WINDOW_BYTES = 1 << 20,
};

struct perf_data_stats {
    uint64_t records, samples;
    uint64_t malformed; /* records that do not hold what their event says; skipped */
    uint64_t late;      /* handed out behind a newer one: the file's rounds are not what they say */
    uint64_t compressed_bytes;
    uint64_t aux_bytes;    /* hardware trace passed over */
    bool is_unfinished;    /* the recorder did not write the size of its data */
    bool is_cut;           /* the file ends before its data does, or within a record */
    uint64_t damage_off;   /* file offset from which on nothing could be read, 0: none */
    uint64_t damage_bytes; /* not read from there on; 0 when the size is not known */
    char damage[160];      /* what was wrong there, or "" */
};

struct perf_data {
    struct perf_header header;
    struct perf_file_parts parts;
    struct perf_data_stats stats;
    struct byte_stream *stream; /* borrowed */
};

/*
 * `event` is an index into header.events. The record is valid during the call, its spans until it is settled,
 * which comes for many records at once.
 */
typedef bool perf_data_record_fn(void *user, uint32_t event, const struct perf_record *r, struct error *err);
typedef void perf_data_settle_fn(void *user);

/* Reads the header; the stream is at its start, borrowed, with a window of PERF_DATA_WINDOW_BYTES. */
bool perf_data_open(struct perf_data *p, struct byte_stream *stream, struct error *err);
void perf_data_close(struct perf_data *p);
/*
 * Hands out all records of the kernel's kinds. Fails when `emit` does or the input cannot be read;
 * damaged content ends it early and is told in `stats`.
 */
bool perf_data_read(struct perf_data *p, perf_data_record_fn *emit, perf_data_settle_fn *settle, void *user,
                    struct error *err);

#endif
