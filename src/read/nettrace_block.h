/*
 * nettrace_block: the records inside one event or metadata block of a nettrace stream.
 */
#ifndef CLRPERF_READ_NETTRACE_BLOCK_H
#define CLRPERF_READ_NETTRACE_BLOCK_H

#include "base/cursor.h"

enum nettrace_layout {
    NETTRACE_NETPERF,    /* version 3: fixed header, stack inline */
    NETTRACE_PLAIN,      /* version 4, fixed header */
    NETTRACE_COMPRESSED, /* version 4, a header says what changed since the record before */
};

struct nettrace_record {
    uint32_t type_id; /* 0: the record describes a type */
    uint32_t sequence;
    uint64_t capture_thread_id, thread_id;
    uint32_t processor;
    uint32_t stack_id;
    uint64_t ticks;
    struct span activity, related_activity; /* 16 bytes each, or empty */
    struct span stack;                      /* NetPerf only */
    struct span payload;
    bool sorted;
};

struct nettrace_block {
    struct cursor c;
    enum nettrace_layout layout;
    uint64_t min_ticks, max_ticks; /* as its header promises; 0 and UINT64_MAX in NetPerf */
    uint32_t payload_size;         /* of the record before */
    struct nettrace_record last;
};

/* Reads the block's header. `content` starts at a multiple of 4 of the stream; `version` is 3 or 4. */
bool nettrace_block_open(struct nettrace_block *b, struct span content, uint32_t version, struct error *err);
/* The next record, or false at the end; then nettrace_block_finish() tells whether it was a good one. */
bool nettrace_block_next(struct nettrace_block *b, struct nettrace_record *out);
bool nettrace_block_finish(const struct nettrace_block *b, struct error *err);

#endif
