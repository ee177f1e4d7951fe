/*
 * nettrace_block: the records inside one event or metadata block of a nettrace stream.
 */
#ifndef CLRPERF_READ_NETTRACE_BLOCK_H
#define CLRPERF_READ_NETTRACE_BLOCK_H

#include <endian.h>

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
    uint8_t changed;     /* since the consumer set it to 0 */
    struct span payload; /* of a compressed record: its size is that of the one before unless told */
    struct span activity, related_activity; /* 16 bytes each, also of zeros, or empty; not in version 6 */
    struct span stack;                      /* NetPerf only */
};

struct nettrace_block {
    struct span content;
    const uint8_t *at, *end; /* what comes next, in `content` */
    bool failed;
    enum nettrace_layout layout;
    uint32_t version;
    uint64_t min_ticks, max_ticks; /* as its header promises; 0 and UINT64_MAX in NetPerf */
    struct nettrace_record record; /* the latest */
};

/* Reads the block's header. `content` starts at a multiple of 4 of the stream; `version` is 3, 4 or 6. */
bool nettrace_block_open(struct nettrace_block *b, struct span content, uint32_t version, struct error *err);
/* What is left of a block, where that is less than a head may have, and as much room behind it, of zeros. */
struct nettrace_rest {
    uint8_t bytes[2 * NETTRACE_HEADER_ROOM];
};
/* Returns where b->at lies in it. */
const uint8_t *nettrace_block_rest(const struct nettrace_block *b, struct nettrace_rest *rest);
/* Activities of a record that was read from it, `start`, become those of the block, where that is at `at`. */
void nettrace_rest_leave(const struct nettrace_rest *rest, const uint8_t *start, const uint8_t *at,
                         struct nettrace_record *r);
/* Below: for nettrace_block_next(). */
void nettrace_block_uncompressed(struct nettrace_block *b);
void nettrace_block_near_end(struct nettrace_block *b);

/* What a head says besides what it changes in its record. */
struct nettrace_head {
    const uint8_t *payload; /* where that begins, of record.payload.size bytes; NULL: a number is malformed */
    uint64_t ticks;         /* since the record before; wraps, as time may step back between two threads */
};

/* Returns what comes behind the activities, which are there. */
static inline const uint8_t *nettrace_head_activities(struct nettrace_record *r, uint8_t flags,
                                                      const uint8_t *at)
{
    if (flags & NETTRACE_HAS_ACTIVITY) {
        r->activity = (struct span){ at, NETTRACE_ACTIVITY_BYTES };
        at += NETTRACE_ACTIVITY_BYTES;
    }
    if (flags & NETTRACE_HAS_RELATED_ACTIVITY) {
        r->related_activity = (struct span){ at, NETTRACE_ACTIVITY_BYTES };
        at += NETTRACE_ACTIVITY_BYTES;
    }
    return at;
}

/* Reads a head behind its flags. The time is left to the caller. */
static inline __attribute__((always_inline)) struct nettrace_head
nettrace_head_read(struct nettrace_record *r, uint8_t flags, const uint8_t *at, bool is_v6)
{
    static const struct nettrace_head malformed;
    struct nettrace_head head;
    struct nettrace_number n = { .after = at };
    if (flags & NETTRACE_HAS_TYPE) {
        n = nettrace_take_varuint32(n.after);
        if (!n.after)
            return malformed;
        r->type_id = (uint32_t)n.value;
    }
    if (flags & NETTRACE_HAS_SEQUENCE) {
        n = nettrace_take_varuint32(n.after);
        if (!n.after)
            return malformed;
        r->sequence += (uint32_t)n.value + 1;
        n = nettrace_take_varuint64(n.after);
        if (!n.after)
            return malformed;
        r->capture_thread_id = n.value;
        n = nettrace_take_varuint32(n.after);
        if (!n.after)
            return malformed;
        r->processor = (uint32_t)n.value;
    } else {
        r->sequence += r->type_id != 0 || is_v6;
    }
    if (flags & NETTRACE_HAS_THREAD) {
        n = nettrace_take_varuint64(n.after);
        if (!n.after)
            return malformed;
        r->thread_id = n.value;
    }
    if (flags & NETTRACE_HAS_STACK) {
        n = nettrace_take_varuint32(n.after);
        if (!n.after)
            return malformed;
        r->stack_id = (uint32_t)n.value;
    }
    n = nettrace_take_varuint64(n.after);
    if (!n.after)
        return malformed;
    head.ticks = n.value;
    if (flags & (NETTRACE_HAS_ACTIVITY | NETTRACE_HAS_RELATED_ACTIVITY)) {
        if (!is_v6) {
            n.after = nettrace_head_activities(r, flags, n.after);
        } else if (flags & NETTRACE_HAS_ACTIVITY) {
            n = nettrace_take_varuint32(n.after);
            if (!n.after)
                return malformed;
            r->label_id = (uint32_t)n.value;
        }
    }
    r->sorted = flags & NETTRACE_IS_SORTED;
    r->changed |= flags;
    if (flags & NETTRACE_HAS_PAYLOAD_SIZE) {
        n = nettrace_take_varuint32(n.after);
        if (!n.after)
            return malformed;
        r->payload.size = (uint32_t)n.value;
    }
    head.payload = n.after;
    return head;
}

/* The flags of nine heads of ten that runtimes write: calls F with each. */
#define NETTRACE_USUAL_FLAGS(F)                                                                              \
    F(NETTRACE_HAS_THREAD)                                                                                   \
    F(NETTRACE_HAS_THREAD | NETTRACE_HAS_STACK)                                                              \
    F(NETTRACE_HAS_THREAD | NETTRACE_HAS_STACK | NETTRACE_HAS_TYPE | NETTRACE_HAS_PAYLOAD_SIZE)              \
    F(NETTRACE_HAS_TYPE)                                                                                     \
    F(NETTRACE_HAS_TYPE | NETTRACE_HAS_PAYLOAD_SIZE)                                                         \
    F(NETTRACE_HAS_TYPE | NETTRACE_HAS_STACK)                                                                \
    F(NETTRACE_HAS_TYPE | NETTRACE_HAS_STACK | NETTRACE_HAS_PAYLOAD_SIZE)                                    \
    F(NETTRACE_HAS_STACK)                                                                                    \
    F(NETTRACE_HAS_STACK | NETTRACE_HAS_PAYLOAD_SIZE)

/*
 * The same for such flags, known when this is compiled, where each number has as many bytes as it mostly has:
 * the thread and the time two, all others one. So one comparison tells where everything lies. False: it is
 * another head, and nothing was read. `at`: of its flags; at least 8 bytes can be read behind them.
 */
static inline __attribute__((always_inline)) bool
nettrace_head_usual(struct nettrace_record *r, uint8_t flags, const uint8_t *at, struct nettrace_head *out)
{
    unsigned type = 1, thread = type + !!(flags & NETTRACE_HAS_TYPE);
    unsigned stack = thread + (flags & NETTRACE_HAS_THREAD ? 2 : 0);
    unsigned ticks = stack + !!(flags & NETTRACE_HAS_STACK), size = ticks + 2;
    unsigned payload = size + !!(flags & NETTRACE_HAS_PAYLOAD_SIZE);
    uint64_t looked_at = UINT64_C(0x8080808080808080) >> 8 * (sizeof looked_at + 1 - payload);
    uint64_t going_on = UINT64_C(0x80) << 8 * (ticks - 1), bytes;
    if (flags & NETTRACE_HAS_THREAD)
        going_on |= UINT64_C(0x80) << 8 * (thread - 1);
    memcpy(&bytes, at + 1, sizeof bytes);
    if ((le64toh(bytes) & looked_at) != going_on)
        return false;
    if (flags & NETTRACE_HAS_TYPE)
        r->type_id = at[type];
    if (flags & NETTRACE_HAS_THREAD)
        r->thread_id = (at[thread] & 0x7fu) | (uint32_t)at[thread + 1] << 7;
    if (flags & NETTRACE_HAS_STACK)
        r->stack_id = at[stack];
    if (flags & NETTRACE_HAS_PAYLOAD_SIZE)
        r->payload.size = at[size];
    *out = (struct nettrace_head){ at + payload, (at[ticks] & 0x7fu) | (uint32_t)at[ticks + 1] << 7 };
    return true;
}

/* Reads the record at b->at. Its head is read from `start`, where there is room. */
static inline __attribute__((always_inline)) void nettrace_block_compressed(struct nettrace_block *b,
                                                                            const uint8_t *start)
{
    struct nettrace_record *r = &b->record;
    struct nettrace_head head = nettrace_head_read(r, *start, start + 1, b->version >= 6);
    size_t left = (size_t)(b->end - b->at), size = head.payload ? (size_t)(head.payload - start) : SIZE_MAX;
    b->failed = size > left || r->payload.size > left - size;
    if (b->failed)
        return;
    r->ticks += head.ticks;
    r->payload.data = b->at + size;
    b->at = r->payload.data + r->payload.size;
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
