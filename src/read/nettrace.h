/*
 * nettrace: the event stream of a .NET runtime, as it comes over its diagnostics socket or lies in a file.
 *
 * Reads "Nettrace" version 4 (all runtimes from 3.0 to 10; its later prose name is 5), version 6 (of several
 * processes, by other tools) and the predecessor NetPerf version 3. Specified in microsoft/perfview,
 * src/TraceEvent/EventPipe/NetTraceFormat.md, NetTraceFormat_v5.md and NetPerfFormat.md.
 *
 * The reader is pushed: feed it bytes in pieces of any size, it calls back for every whole block.
 * Callbacks come in stream order, which is time order within one capturing thread but not across
 * threads: an event marked `sorted` promises that no later one is older than it. Memory is bounded
 * whatever the stream says (NETTRACE_*_MAX). Spans given to callbacks are valid during the call only.
 */
#ifndef CLRPERF_READ_NETTRACE_H
#define CLRPERF_READ_NETTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"

enum {
    NETTRACE_BLOCK_MAX = 16 << 20,   /* bytes; runtimes write about 100 KiB */
    NETTRACE_METADATA_MAX = 1 << 16, /* event types */
    NETTRACE_METADATA_BYTES_MAX = 32 << 20,
    NETTRACE_STACKS_MAX = 1 << 18,       /* between two sequence points */
    NETTRACE_STACK_BYTES_MAX = 64 << 20, /* between two sequence points */
    NETTRACE_THREADS_MAX = 1 << 17,
    NETTRACE_LABELS_MAX = 1 << 20, /* lists between two sequence points */
};

/* The stream's first object. */
struct nettrace_info {
    uint32_t version; /* 3, 4 or 6 */
    uint16_t utc[8];  /* year, month, weekday, day, hour, minute, second, millisecond at sync_ticks */
    uint64_t sync_ticks, sync_ns;
    uint64_t frequency;    /* ticks per second; 1e9 on Linux, where ticks are CLOCK_MONOTONIC */
    uint32_t pointer_size; /* 4 or 8 */
    uint32_t process_id;   /* in the target's pid namespace; 0 in a stream of several processes */
    uint32_t processors;
    uint32_t sampling_period_ns;
};

/* How much of a type's events the consumer wants. */
enum nettrace_want {
    NETTRACE_EVENT,  /* on_event() for each */
    NETTRACE_SAMPLE, /* on_sample() for each, which costs less */
    NETTRACE_TIME,   /* on_times(), which costs far less */
    NETTRACE_COUNT,  /* what the type says of them in the end */
};

/* What kind of event a record is. Kept by the reader as long as it lives. */
struct nettrace_type {
    uint32_t id;          /* of this description, in this stream */
    bool is_v6;           /* `fields` are written as nettrace 6 does */
    struct span provider; /* UTF-16LE */
    struct span name;     /* UTF-16LE; empty for the runtime's own events */
    uint32_t event_id;
    uint32_t version;
    uint32_t level;
    uint8_t opcode; /* 0 info, 1 start, 2 stop, ... */
    uint64_t keywords;
    /* Field descriptions, undecoded: i32 count and fields (type before name), and the "V2 params" tag's
     * content; of nettrace 6: u16 count and fields, and nothing. */
    struct span fields;
    struct span params;
    /* The reader's: what was told of it so far, wanted or not. */
    uint64_t events, events_with_stack, payload_bytes, latest_ns;
    uint64_t owner;            /* whose the latest was, of those that were not wanted */
    uint64_t mark;             /* the consumer's, set from on_type(); 0 before */
    enum nettrace_want wanted; /* the consumer's, too */
    /* nettrace_tally's: what it does with them, and those that it has counted and not told yet. */
    uint32_t tallied; /* enum nettrace_tallied */
    uint32_t fresh;
    uint64_t fresh_ticks; /* of the latest of them */
    uint64_t fresh_stackless;
};

struct nettrace_event {
    const struct nettrace_type *type;
    uint64_t time_ns;                       /* ticks scaled to nanoseconds */
    uint64_t process_id;                    /* 0: not known */
    uint64_t thread_id;                     /* the thread the event is about, in the target's pid namespace */
    uint64_t capture_thread_id;             /* the thread that wrote it; nearly always the same */
    uint32_t sequence;                      /* attempts to write of the capturing thread, from 1 */
    uint32_t processor;                     /* UINT32_MAX: not known */
    bool sorted;                            /* no later event of the stream is older */
    struct span activity, related_activity; /* 16 bytes, or empty when zero */
    struct span stack;    /* addresses of info.pointer_size bytes, leaf first; empty: none */
    uint64_t *stack_mark; /* the consumer's, as long as the stream keeps this stack; 0 before; or NULL */
    struct span payload;
};

/* An event, as far as it says where a thread was. Members as above. */
struct nettrace_sample {
    uint64_t time_ns, process_id, thread_id;
    struct span stack;
    uint64_t *stack_mark;
    struct span payload;
};

/* Callbacks; each may be NULL. One that returns false, with `err` filled, ends the reading. */
struct nettrace_sink {
    void *user;
    bool (*on_info)(void *user, const struct nettrace_info *info, struct error *err);
    /* A new or changed event type. `type->mark` and `type->wanted` may be set through the pointer. */
    bool (*on_type)(void *user, struct nettrace_type *type, struct error *err);
    /* Of nettrace 6: a thread is listed. `name` is UTF-8, or empty. */
    bool (*on_thread)(void *user, uint64_t process_id, uint64_t thread_id, struct span name,
                      struct error *err);
    bool (*on_event)(void *user, const struct nettrace_event *event, struct error *err);
    /* Instead of on_event(), as a type wants it. */
    void (*on_sample)(void *user, const struct nettrace_sample *sample);
    /* Of a type whose events are not wanted as such one comes, the first or of another process than the one
     * before.
     */
    void (*on_owner)(void *user, const struct nettrace_type *type, uint64_t process_id);
    /* Instead of on_event() of a type of which only times are wanted: `count` events at about that time. */
    void (*on_times)(void *user, const struct nettrace_type *type, uint64_t time_ns, uint64_t count);
    /* The last time that on_times() need not tell apart from `time_ns`. NULL: that itself. */
    uint64_t (*same_until)(void *user, uint64_t time_ns);
    /* Everything before is older than `time_ns`, everything after is newer. */
    bool (*on_sequence_point)(void *user, uint64_t time_ns, struct error *err);
    /*
     * At least `count` events of a thread were lost somewhere before this place of the stream (the
     * runtime notices late, and threads that ended may take their losses with them).
     */
    bool (*on_loss)(void *user, uint64_t capture_thread_id, uint64_t count, struct error *err);
    /*
     * The content of a block is not what the format says, or its events lie outside the time that it
     * promises: what was delivered of it stays, the rest is left out. NULL: that ends the reading.
     */
    bool (*on_damage)(void *user, uint64_t stream_off, uint64_t size_bytes, const struct error *what,
                      struct error *err);
};

struct nettrace_counts {
    uint64_t bytes;       /* fed */
    uint64_t events;      /* of a known type, delivered or not */
    uint64_t lost;        /* events the runtime dropped, at least */
    uint64_t untyped;     /* events whose description never came: skipped */
    uint64_t stackless;   /* events whose stack is not known: delivered without it */
    uint64_t time_breaks; /* times outside their block's bounds, or older than the thread's last */
    uint64_t limits;      /* stacks, types or threads beyond our bounds: not kept */
};

struct nettrace_reader;

/* Whether a file that begins with `head` is one. */
bool nettrace_recognises(struct span head);

/* `sink` is copied. Free with nettrace_reader_free(). */
struct nettrace_reader *nettrace_reader_new(const struct nettrace_sink *sink);
void nettrace_reader_free(struct nettrace_reader *r);
/*
 * Takes the next bytes of the stream. Fails for good when they are not what the format says
 * (ERROR_INPUT, ERROR_LIMIT, ERROR_UNSUPPORTED for nettrace 7) or a callback fails; what was
 * delivered before stays true. Bytes after the end of the stream are ignored.
 */
bool nettrace_reader_feed(struct nettrace_reader *r, struct span bytes, struct error *err);
/*
 * The same, for who can give what was not taken again, with more behind it: nothing is copied, unless there
 * are fewer bytes than nettrace_reader_wanted().
 */
bool nettrace_reader_take(struct nettrace_reader *r, struct span bytes, size_t *out_taken, struct error *err);
/* How many bytes make up what comes next; at least 1. */
size_t nettrace_reader_wanted(const struct nettrace_reader *r);
/* The end tag was seen: nothing is missing at the end. */
bool nettrace_reader_ended(const struct nettrace_reader *r);
/* NULL until the stream's first object was read. */
const struct nettrace_info *nettrace_reader_info(const struct nettrace_reader *r);
/* How many bytes of the stream whole objects make up so far. */
uint64_t nettrace_reader_offset(const struct nettrace_reader *r);
const struct nettrace_counts *nettrace_reader_counts(const struct nettrace_reader *r);

#endif
