/*
 * nettrace_block: the records inside one event or metadata block of a nettrace stream.
 */
#ifndef CLRPERF_READ_NETTRACE_BLOCK_H
#define CLRPERF_READ_NETTRACE_BLOCK_H

#include "base/cursor.h"

enum nettrace_layout {
    NETTRACE_NETPERF,    /* version 3: fixed header, stack inline */
    NETTRACE_PLAIN,      /* versions 4 and 6, fixed header */
    NETTRACE_COMPRESSED, /* versions 4 and 6, a header says what changed since the record before */
};

struct nettrace_record {
    uint32_t type_id; /* 0: the record describes a type */
    uint32_t sequence;
    uint64_t capture_thread_id, thread_id; /* version 6: places in the stream's list of threads */
    uint64_t ticks;
    uint32_t processor;
    uint32_t stack_id;
    uint32_t label_id; /* version 6: place in the stream's lists of labels; 0: none */
    bool sorted;
    struct span payload;
    struct span activity, related_activity; /* 16 bytes each, or empty; not in version 6 */
    struct span stack;                      /* NetPerf only */
};

struct nettrace_block {
    struct cursor c;
    enum nettrace_layout layout;
    uint32_t version;
    uint64_t min_ticks, max_ticks; /* as its header promises; 0 and UINT64_MAX in NetPerf */
    uint32_t payload_size;         /* of the record before */
    struct nettrace_record record; /* the latest */
};

/* Reads the block's header. `content` starts at a multiple of 4 of the stream; `version` is 3, 4 or 6. */
bool nettrace_block_open(struct nettrace_block *b, struct span content, uint32_t version, struct error *err);
/*
 * The next record, valid until the next call, or NULL at the end; then nettrace_block_finish() tells whether
 * it was a good one.
 */
const struct nettrace_record *nettrace_block_next(struct nettrace_block *b);
bool nettrace_block_finish(const struct nettrace_block *b, struct error *err);

#endif
