/*
 * format: the constants of the capture file; docs/TRACE_FORMAT.md is their meaning.
 *
 * Reader and writer share this header and nothing else.
 */
#ifndef CLRPERF_TRACE_FORMAT_H
#define CLRPERF_TRACE_FORMAT_H

#include <stdint.h>

#define FORMAT_MAGIC "clrperf\n" /* 8 bytes, at offset 0 */

enum {
    FORMAT_MAJOR = 1,
    FORMAT_MINOR = 0,
    FORMAT_HEADER_BYTES = 64,
    FORMAT_BLOCK_ALIGN = 8,
    FORMAT_BLOCK_HEADER_BYTES = 32,
    FORMAT_BLOCK_MAGIC = 0x426c7263, /* "crlB" */
    FORMAT_RAW_BYTES_MAX = 4 << 20,  /* of a block, uncompressed */
    FORMAT_STORED_BYTES_MAX = FORMAT_RAW_BYTES_MAX + (64 << 10),
};

enum format_block_flags { FORMAT_ZSTD = 1 };

enum format_block_type {
    FORMAT_BATCH = 1, /* sections of tables */
    FORMAT_END = 2,   /* written last; what comes behind it does not belong to the capture */
};

enum format_section {
    FORMAT_STRINGS = 1,
    FORMAT_FACTS,
    FORMAT_IMAGES,
    FORMAT_PROCESSES,
    FORMAT_THREADS,
    FORMAT_MAPPINGS,
    FORMAT_FUNCTIONS,
    FORMAT_CODES,
    FORMAT_LOCATIONS,
    FORMAT_NAMES, /* of locations */
    FORMAT_STACKS,
    FORMAT_SAMPLES,
    FORMAT_LOSSES,
    FORMAT_STATE,
    FORMAT_METHOD_LINES, /* locations whose line is their method's */
    FORMAT_EVENT_TYPES,
    FORMAT_SUBSCRIPTIONS,
    FORMAT_EVENTS,
    FORMAT_EVENT_DESCRIPTIONS, /* of event types */
    FORMAT_EVENT_ACTIVITIES,   /* of the events of the section before */
    FORMAT_INLINED,            /* functions inlined at locations */
};

enum format_state_bits { FORMAT_SYMBOLIZED = 1 };

#endif
