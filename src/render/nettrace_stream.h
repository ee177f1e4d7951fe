/*
 * nettrace_stream: writes an event stream as a .NET runtime would: nettrace 4.
 *
 * Events come in time order; everything that an event refers to is written before it. The format is that of
 * read/nettrace.h.
 */
#ifndef CLRPERF_RENDER_NETTRACE_STREAM_H
#define CLRPERF_RENDER_NETTRACE_STREAM_H

#include "base/buffer.h"
#include "base/id_map.h"
#include "render/output.h"

struct nettrace_stream {
    struct output *out;                  /* borrowed */
    uint64_t off;                        /* bytes written */
    struct buffer types, stacks, events; /* of the blocks that come next */
    uint32_t type_count, first_stack, stack_count;
    uint32_t no_stack;                   /* the empty one; 0: not there since the last sequence point */
    uint64_t stack_bytes;                /* written since the last sequence point */
    bool failed;                         /* something did not fit a block, and is not there */
    uint64_t block_from_ns, block_to_ns; /* of the events */
    struct nettrace_stream_latest {      /* of the event before in the block: what is equal is not repeated */
        uint64_t thread_id;
        uint32_t type, stack, sequence, payload_size;
        uint8_t activity[16], related_activity[16];
    } latest;
    struct id_map thread_ids;
    struct nettrace_stream_thread *threads; /* [0] is unused */
    size_t thread_count, thread_capacity;
};

struct nettrace_stream_head {
    uint64_t start_ns;    /* CLOCK_MONOTONIC, as all times are */
    uint64_t realtime_ns; /* at that time; 0 unknown */
    uint32_t pointer_size, process_id, processors, sampling_period_ns;
};

struct nettrace_stream_type {
    const char *provider, *name; /* UTF-8 */
    uint32_t event_id, version, level;
    uint64_t keywords;
    uint8_t opcode;
    struct span fields, params; /* as read/nettrace.h has them; empty: none */
};

struct nettrace_stream_event {
    uint32_t type, stack; /* as nettrace_stream_type() and _stack() gave them */
    uint64_t time_ns, thread_id;
    struct span payload, activity, related_activity; /* the last two 16 bytes or empty */
};

void nettrace_stream_begin(struct nettrace_stream *s, const struct nettrace_stream_head *head,
                           struct output *out);
uint32_t nettrace_stream_add_type(struct nettrace_stream *s, const struct nettrace_stream_type *type);
/* Addresses leaf first. */
uint32_t nettrace_stream_add_stack(struct nettrace_stream *s, const uint64_t *addrs, size_t count);
/* The stack of events without one. */
uint32_t nettrace_stream_no_stack(struct nettrace_stream *s);
void nettrace_stream_add_event(struct nettrace_stream *s, const struct nettrace_stream_event *event);
/*
 * Adds an event about the recording, and empties `payload`. It is on no thread: dotnet-trace takes what a
 * thread tells for a look at what it does.
 */
void nettrace_stream_tell(struct nettrace_stream *s, uint32_t type, uint64_t time_ns, struct buffer *payload);
/* After so many stacks ids begin anew: those given out mean nothing any more. */
bool nettrace_stream_wants_point(const struct nettrace_stream *s);
/* Ends what stacks were given out so far. `lost`: so many events of some thread came not so far. */
void nettrace_stream_add_point(struct nettrace_stream *s, uint64_t time_ns, uint64_t lost);
/* Ends the stream and frees what it holds. Fails with ERROR_LIMIT when something did not fit. */
bool nettrace_stream_end(struct nettrace_stream *s, struct error *err);

#endif
