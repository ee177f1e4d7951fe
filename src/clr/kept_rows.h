/*
 * kept_rows: what a nettrace file that clrperf wrote says beyond what others write and read.
 *
 * The format knows samples of wall time of named methods only. The rest of a capture is kept where other
 * readers pass over it, so that reading the file gives the capture again: as types of events of a provider of
 * our own, which have a row each in their names and of which no event ever comes (dotnet-trace would show
 * events as frames); behind what a rundown event says of a method; and behind the state of a sample of CPU
 * time. Specified here.
 */
#ifndef CLRPERF_CLR_KEPT_ROWS_H
#define CLRPERF_CLR_KEPT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "trace/trace.h"

#define KEPT_PROVIDER "clrperf"

/* Among the keywords of types whose events others read, but which are no events of the capture: clrperf tells
 * them of names when it writes. */
#define KEPT_TOLD_KEYWORD (UINT64_C(1) << 62)

/* What the type's name is, by the type's event id. The first type of a file is one of these. */
enum kept_row_id {
    KEPT_BEGIN,        /* "": clrperf wrote the file */
    KEPT_FACT,         /* "KEY VALUE", as trace/facts.h has them */
    KEPT_LOSS,         /* "REASON COUNT FROM_NS TO_NS", the reason as a number */
    KEPT_THREAD,       /* "TID NAME" */
    KEPT_RUNTIME,      /* the version of the process's runtime */
    KEPT_CONTAINER,    /* the process's */
    KEPT_SUBSCRIPTION, /* "KEYWORDS LEVEL FROM_NS TO_NS PROVIDER" */
    KEPT_MAPPING,      /* "KIND START END PATH": where frames without a name are; the kind as a number */
};

/* Texts are borrowed, UTF-8; numbers are decimal. */
struct kept_fact {
    int index; /* as kept_fact_key() has them; -1: of another version */
    struct span value;
};

struct kept_thread {
    uint32_t tid;
    struct span name;
};

struct kept_subscription {
    uint64_t keywords, from_ns, to_ns;
    uint8_t level;
    struct span provider;
};

struct kept_mapping {
    uint64_t start, end; /* not empty */
    uint8_t kind;        /* enum image_kind */
    struct span path;
};

/* False when it is not what it should be. */
bool kept_fact_read(struct span text, struct kept_fact *out);
bool kept_loss_read(struct span text, struct trace_loss *out); /* of no process */
bool kept_thread_read(struct span text, struct kept_thread *out);
bool kept_subscription_read(struct span text, struct kept_subscription *out);
bool kept_mapping_read(struct span text, struct kept_mapping *out);

/* Facts that are kept, indices below KEPT_FACTS. */
enum { KEPT_FACTS = 19 };
const char *kept_fact_key(int index);

/*
 * Behind a method event of version 1, little-endian: u8 kind, u8 tier, u8 resolver, text of type parameters,
 * UTF-16 with a zero unit at its end.
 */
struct kept_method {
    uint8_t kind, tier, resolver; /* enum code_kind, code_tier, resolver */
    struct span type_params;      /* UTF-16LE */
};

void kept_method_append(struct buffer *out, const struct trace_function *f, const struct trace_location *row,
                        const char *type_params);
/* `rest`: of its runtime_method_event. False when it has nothing there. */
bool kept_method_read(struct span rest, struct kept_method *out);

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

void kept_sample_append(struct buffer *out, const struct kept_sample *sample);
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

static inline bool kept_is_method_addr(uint64_t addr)
{
    return addr >= kept_method_addr(STACK_ROOTS) && addr < kept_method_addr(UINT32_MAX);
}

/* How a stack ended whose outermost frame is that; STACK_WHOLE: it is a frame. */
static inline enum stack_end kept_stack_end(uint64_t frame)
{
    return frame == kept_frame_addr(STACK_TRUNCATED) ? STACK_TRUNCATED
           : frame == kept_frame_addr(STACK_BROKEN)  ? STACK_BROKEN
                                                     : STACK_WHOLE;
}

#endif
