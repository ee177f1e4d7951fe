/*
 * perf_header: what a perf.data file says about its recording: the events, and where it was made.
 *
 * Specified in the Linux source, tools/perf/Documentation/perf.data-file-format.txt and
 * tools/perf/util/header.c. The same pieces stand in sections of a file, or come as records of a pipe.
 */
#ifndef CLRPERF_READ_PERF_HEADER_H
#define CLRPERF_READ_PERF_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/id_map.h"
#include "base/source.h"
#include "read/perf_record.h"

enum {
    PERF_HEADER_EVENTS_MAX = 4096,
    PERF_HEADER_IDS_MAX = 1 << 20,
    PERF_HEADER_BUILD_IDS_MAX = 1 << 16,
    PERF_HEADER_SECTION_BYTES_MAX = 64 << 20,
    PERF_HEADER_TEXT_BYTES_MAX = 64 << 20,
};

struct perf_event_info {
    struct perf_event_attr attr; /* the fields that decoding needs; others are 0 */
    struct perf_sample_layout layout;
    const char *name; /* "cpu-clock"; made up when the file does not say */
};

struct perf_event_id {
    uint64_t id;
    uint32_t event; /* index */
};

struct perf_build_id {
    const char *path;
    char hex[41];
};

/* Texts are "" and numbers 0 when the file does not say. All owned by the header. */
struct perf_header {
    struct arena text;
    struct perf_event_info *events;
    size_t event_count, events_capacity;
    struct perf_event_id *ids;
    size_t id_count, ids_capacity;
    struct id_map by_id;
    struct perf_build_id *build_ids;
    size_t build_id_count, build_ids_capacity;
    const char *hostname, *os_release, *tool_version, *arch, *cpu, *command_line;
    uint32_t cpus_online;
    uint32_t clock_id;              /* of all times, when has_clock_id */
    uint64_t wall_ns, wall_mono_ns; /* the same moment since 1970 and on the clock of the records */
    uint64_t first_ns, last_ns;     /* of the samples */
    bool has_clock_id;
    uint32_t damaged_features; /* sections that are cut or do not hold what they should */
};

void perf_header_init(struct perf_header *h);
void perf_header_done(struct perf_header *h);

/* The event with this id; the first one when there is only one or the id is not known. */
uint32_t perf_header_event_of(const struct perf_header *h, uint64_t id);

/* Where the parts of a file are. */
struct perf_file_parts {
    bool is_pipe;      /* no parts: everything comes as records, from data_off on */
    bool is_of_folder; /* of `perf record --threads`: the samples are in files beside this one */
    uint64_t data_off, data_size;
    uint64_t attrs_off, attrs_size, attr_size;
    uint64_t features[4];
};

/* Does it start like a perf.data of any byte order? */
bool perf_header_recognises(struct span head);
/* `head`: the first bytes of the input, 104 if there are so many. */
bool perf_header_read_parts(struct span head, struct perf_file_parts *out, struct error *err);
/* The events of a file, with their ids. */
bool perf_header_read_events(struct perf_header *h, const struct source *file,
                             const struct perf_file_parts *parts, struct error *err);
/* The features behind the data of a file; damaged ones are counted, not fatal. */
void perf_header_read_features(struct perf_header *h, const struct source *file,
                               const struct perf_file_parts *parts);

/* Bodies (behind the record's header) of HEADER_ATTR, EVENT_UPDATE, HEADER_FEATURE and HEADER_BUILD_ID. */
bool perf_header_take_attr(struct perf_header *h, struct span body, struct error *err);
void perf_header_take_update(struct perf_header *h, struct span body);
void perf_header_take_feature(struct perf_header *h, struct span body);
void perf_header_take_build_id(struct perf_header *h, struct span body, uint16_t misc);

#endif
