/*
 * kept_events: what a nettrace file that clrperf wrote says beyond what others write and read.
 *
 * The format knows samples of wall time of named methods only. Events of a provider of our own, which other
 * readers pass over, have the rest of a capture, so that reading the file gives the capture again: facts, how
 * methods were compiled and named, losses, names of threads. A sample of CPU time is an event of the
 * runtime's sampler with more behind its state. Specified here. Integers are little-endian, texts UTF-16LE
 * with a zero unit at their end.
 */
#ifndef CLRPERF_CLR_KEPT_EVENTS_H
#define CLRPERF_CLR_KEPT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "trace/trace.h"

#define KEPT_PROVIDER "clrperf"

/* Events of it, of version KEPT_VERSION. The file describes facts first: so it says that clrperf wrote it. */
enum kept_event_id {
    KEPT_FACT = 1,
    KEPT_METHOD,
    KEPT_LOSS,
    KEPT_THREAD,
    KEPT_PROCESS,
    KEPT_SUBSCRIPTION,
    KEPT_EVENTS
};
enum { KEPT_VERSION = 1 };

/* Text key, text value: as trace/facts.h has them. */
struct kept_fact {
    struct span key, value; /* UTF-16LE */
};

/* u64 address, u8 kind, u8 tier, u8 resolver, text type parameters: of the method that begins there. */
struct kept_method {
    uint64_t addr;
    uint8_t kind, tier, resolver; /* enum code_kind, code_tier, resolver */
    struct span type_params;      /* UTF-16LE */
};

/* u8 reason, u64 count, u64 from, u64 to. */
struct kept_loss {
    uint8_t reason; /* enum loss_reason */
    uint64_t count, from_ns, to_ns;
};

/* u32 number, text name. */
struct kept_thread {
    uint32_t tid;
    struct span name; /* UTF-16LE */
};

/* Text version of its runtime, text container: of the process that the file is of. */
struct kept_process {
    struct span runtime_version, container; /* UTF-16LE */
};

/* Text provider, u64 keywords, u8 level, u64 from, u64 to: what it was asked to tell. */
struct kept_subscription {
    struct span provider; /* UTF-16LE */
    uint64_t keywords, from_ns, to_ns;
    uint8_t level;
};

/*
 * Event 0 of the runtime's sampler, in a version that no runtime has: u32 state, u32 CPU, u64 weight. The
 * state is one of the sampler's: in managed code, which here means that it is a sample, or outside: the end
 * of the sample before, for readers that count one until the next.
 */
enum { KEPT_SAMPLE_VERSION = 100 };
enum { KEPT_STATE_OUTSIDE = 1, KEPT_STATE_SAMPLE };
struct kept_sample {
    uint32_t state, cpu;
    uint64_t weight;
};

/* The fields of an event as nettrace 4 describes them. */
void kept_event_describe(enum kept_event_id id, struct buffer *out);
const char *kept_event_name(enum kept_event_id id);

/* Facts that are kept: an index below KEPT_FACTS, in no order; -1 for others. */
enum { KEPT_FACTS = 19 };
int kept_fact_index(struct span key /* UTF-16LE */);
const char *kept_fact_key(int index);

void kept_fact_append(struct buffer *out, const char *key, const char *value);
void kept_method_append(struct buffer *out, const struct kept_method *m, const char *type_params);
void kept_loss_append(struct buffer *out, const struct kept_loss *loss);
void kept_thread_append(struct buffer *out, uint32_t tid, const char *name);
void kept_process_append(struct buffer *out, const char *runtime_version, const char *container);
void kept_subscription_append(struct buffer *out, const struct kept_subscription *row, const char *provider);
void kept_sample_append(struct buffer *out, const struct kept_sample *sample);

/* False when it is cut short, or says what no capture has. */
bool kept_fact_read(struct span payload, struct kept_fact *out);
bool kept_method_read(struct span payload, struct kept_method *out);
bool kept_loss_read(struct span payload, struct kept_loss *out);
bool kept_thread_read(struct span payload, struct kept_thread *out);
bool kept_process_read(struct span payload, struct kept_process *out);
bool kept_subscription_read(struct span payload, struct kept_subscription *out);
bool kept_sample_read(struct span payload, struct kept_sample *out);

/*
 * Where methods are said to be: where no code lies, below what the kernel gives to programs and far above
 * what is mapped by hand. The first places are the roots of stacks that were cut there.
 */
enum { KEPT_METHOD_BYTES = 16 };
#define KEPT_METHODS_AT UINT64_C(0x10000000000)

/* Where the method of this number begins; numbers below STACK_ROOTS are enum stack_end. */
static inline uint64_t kept_method_addr(uint32_t number)
{
    return KEPT_METHODS_AT + (uint64_t)number * KEPT_METHOD_BYTES;
}

/* A frame in it. */
static inline uint64_t kept_frame_addr(uint32_t number)
{
    return kept_method_addr(number) + KEPT_METHOD_BYTES / 2;
}

/* How a stack ended whose outermost frame is that; STACK_WHOLE: it is a frame. */
static inline enum stack_end kept_stack_end(uint64_t frame)
{
    return frame == kept_frame_addr(STACK_TRUNCATED) ? STACK_TRUNCATED
           : frame == kept_frame_addr(STACK_BROKEN)  ? STACK_BROKEN
                                                     : STACK_WHOLE;
}

#endif
