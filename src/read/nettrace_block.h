/*
 * nettrace_block: the records inside one event or metadata block of a nettrace stream.
 */
#ifndef CLRPERF_READ_NETTRACE_BLOCK_H
#define CLRPERF_READ_NETTRACE_BLOCK_H

#include "base/cursor.h"
#include "read/nettrace_header.h"

enum nettrace_layout {
    NETTRACE_NETPERF,    /* version 3: fixed header, stack inline */
    NETTRACE_PLAIN,      /* versions 4 and 6, fixed header */
    NETTRACE_COMPRESSED, /* versions 4 and 6, a header says what changed since the record before */
};

/* What a record says anew: NETTRACE_HAS_ flags. Types, threads and stacks need no second look while it is the
 * same. */
enum {
    NETTRACE_ALL_CHANGED =
        NETTRACE_HAS_TYPE | NETTRACE_HAS_SEQUENCE | NETTRACE_HAS_THREAD | NETTRACE_HAS_STACK
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
    uint8_t changed; /* since the consumer set it to 0 */
    struct span payload;
    struct span activity, related_activity; /* 16 bytes each, or empty; not in version 6 */
    struct span stack;                      /* NetPerf only */
};

struct nettrace_block {
    struct span content;
    const uint8_t *at, *end; /* what comes next, in `content` */
    bool failed;
    enum nettrace_layout layout;
    uint32_t version;
    uint64_t min_ticks, max_ticks; /* as its header promises; 0 and UINT64_MAX in NetPerf */
    uint32_t payload_size;         /* of the record before */
    struct nettrace_record record; /* the latest */
};

/* Reads the block's header. `content` starts at a multiple of 4 of the stream; `version` is 3, 4 or 6. */
bool nettrace_block_open(struct nettrace_block *b, struct span content, uint32_t version, struct error *err);
/* Below: for nettrace_block_next(). */
void nettrace_block_uncompressed(struct nettrace_block *b);
void nettrace_block_near_end(struct nettrace_block *b);

static inline struct span nettrace_block_activity(const struct nettrace_block *b, size_t off)
{
    size_t left = (size_t)(b->end - b->at);
    if (left < NETTRACE_ACTIVITY_BYTES || off > left - NETTRACE_ACTIVITY_BYTES)
        return (struct span){ 0 };
    return nettrace_activity((struct span){ b->at + off, NETTRACE_ACTIVITY_BYTES });
}

/* Reads the record at b->at. Its header is read from `start`, where there is room. */
static inline __attribute__((always_inline)) void nettrace_block_compressed(struct nettrace_block *b,
                                                                            const uint8_t *start)
{
    struct nettrace_record *r = &b->record;
    const uint8_t *at = start;
    bool bad = false;
    uint8_t flags = *at++;
    if (flags & NETTRACE_HAS_TYPE)
        r->type_id = nettrace_take_varuint32(&at, &bad);
    if (flags & NETTRACE_HAS_SEQUENCE) {
        r->sequence += nettrace_take_varuint32(&at, &bad) + 1;
        r->capture_thread_id = nettrace_take_varuint64(&at, &bad);
        r->processor = nettrace_take_varuint32(&at, &bad);
    } else {
        r->sequence += r->type_id != 0 || b->version >= 6;
    }
    if (flags & NETTRACE_HAS_THREAD)
        r->thread_id = nettrace_take_varuint64(&at, &bad);
    if (flags & NETTRACE_HAS_STACK)
        r->stack_id = nettrace_take_varuint32(&at, &bad);
    r->ticks +=
        nettrace_take_varuint64(&at, &bad); /* wraps: time may step back between runs of two threads */
    if (flags & NETTRACE_HAS_ACTIVITY && b->version >= 6) {
        r->label_id = nettrace_take_varuint32(&at, &bad);
    } else if (flags & NETTRACE_HAS_ACTIVITY) {
        r->activity = nettrace_block_activity(b, (size_t)(at - start));
        at += NETTRACE_ACTIVITY_BYTES;
    }
    if (flags & NETTRACE_HAS_RELATED_ACTIVITY && b->version < 6) {
        r->related_activity = nettrace_block_activity(b, (size_t)(at - start));
        at += NETTRACE_ACTIVITY_BYTES;
    }
    r->sorted = flags & NETTRACE_IS_SORTED;
    r->changed |= flags;
    if (flags & NETTRACE_HAS_PAYLOAD_SIZE)
        b->payload_size = nettrace_take_varuint32(&at, &bad);
    size_t left = (size_t)(b->end - b->at), size = (size_t)(at - start) + b->payload_size;
    b->failed = bad || size > left;
    if (b->failed)
        return;
    b->at += size;
    r->payload = (struct span){ b->at - b->payload_size, b->payload_size };
}

/*
 * Reads the next record into b->record, valid until the next call. False at the end; then
 * nettrace_block_finish() tells whether it was a good one. Inline, and `b` given to nobody else, so that what
 * it holds may stay in registers.
 */
static inline __attribute__((always_inline)) bool nettrace_block_next(struct nettrace_block *b)
{
    if (b->at == b->end)
        return false;
    if (b->layout == NETTRACE_COMPRESSED && b->end - b->at >= NETTRACE_HEADER_ROOM) {
        nettrace_block_compressed(b, b->at);
    } else {
        struct nettrace_block copy = *b;
        if (b->layout == NETTRACE_COMPRESSED)
            nettrace_block_near_end(&copy);
        else
            nettrace_block_uncompressed(&copy);
        *b = copy;
    }
    return !b->failed;
}

bool nettrace_block_finish(const struct nettrace_block *b, struct error *err);

#endif
