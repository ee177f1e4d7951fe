/*
 * jit_stats: which methods were compiled, when, by whom, and how long it took.
 *
 * MethodJittingStarted and the load of the method's code by the same thread belong together; compiling nests.
 * The time is wall time between the two. A method whose start was not told (it needs level 5, and the session
 * to be there) is counted without a time.
 */
#ifndef CLRPERF_ANALYSE_JIT_STATS_H
#define CLRPERF_ANALYSE_JIT_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/event_stacks.h"
#include "trace/trace.h"

enum jit_event_id {
    JIT_EVENT_LOAD = 141,
    JIT_EVENT_LOAD_VERBOSE = 143,
    JIT_EVENT_STARTED = 145,
    JIT_EVENT_MEMORY = 146,
    JIT_EVENT_INLINED = 185,
    JIT_EVENT_NOT_INLINED_ANSI = 186,
    JIT_EVENT_NOT_INLINED = 192,
    JIT_EVENT_BACKGROUND_START = 283,
    JIT_EVENT_BACKGROUND_STOP = 284,
};

/* Who wanted it compiled. */
enum jit_trigger {
    JIT_TRIGGER_FOREGROUND, /* a thread that called it, and waited */
    JIT_TRIGGER_OSR,        /* a thread that was in a loop of it */
    JIT_TRIGGER_BACKGROUND, /* tiering, beside the program */
    JIT_TRIGGERS
};

struct jit_method {
    uint32_t process, thread; /* of the trace */
    uint32_t stack;           /* of who wanted it: of the start's event, else of the load's */
    const char *name;         /* as people write it, or the runtime's own; never NULL */
    const char *module;       /* "System.Private.CoreLib"; "" when not known */
    uint8_t tier;             /* enum code_tier */
    uint8_t trigger;          /* enum jit_trigger */
    bool is_dynamic;
    bool has_start;  /* il_bytes, start_ns and time_ns are known */
    bool has_memory; /* what it asked for is known */
    uint32_t il_bytes, native_bytes;
    uint64_t start_ns; /* without a start: when its code was there */
    uint64_t time_ns;
    uint64_t own_ns; /* `time_ns` without what was compiled meanwhile by the same thread */
    uint64_t hot_bytes, read_only_bytes, allocated_bytes;
    uint64_t method_id;
};

struct jit_sum {
    uint64_t count, timed;                    /* of `count`: have a time */
    uint64_t time_ns, il_bytes, native_bytes; /* times: own */
};

struct jit_module {
    const char *name; /* "": not known, or dynamic methods, which are of none */
    uint64_t dynamic; /* methods of it that are */
    struct jit_sum sum;
    struct jit_sum ahead; /* of it: what a thread waited for, and could have been compiled ahead of time */
    bool is_precompiled;  /* code of it was seen that is: what was left out then will be again */
};

/* Why calls were not inlined. */
struct jit_refusal {
    const char *reason;
    uint64_t count;
};

struct jit_stats {
    struct event_stacks stacks; /* also holds the texts */
    struct jit_method *rows;    /* by process and time */
    size_t row_count, row_capacity;
    struct jit_module *modules; /* the one that took longest first */
    size_t module_count;
    struct jit_sum all, by_trigger[JIT_TRIGGERS], by_tier[CODE_TIERS];
    uint64_t inlined, not_inlined; /* decisions, where they were told */
    struct jit_refusal *refusals;  /* the most frequent first */
    size_t refusal_count, refusal_capacity;
    uint64_t unfinished; /* starts without an end: given up, or the capture ended */
    uint64_t malformed;
    bool any;
};

/* The events that it is made of. */
bool jit_stats_wants(const char *provider, uint32_t event_id);

void jit_stats_init(struct jit_stats *stats, const struct trace *t, bool raw_names, uint64_t from_ns,
                    uint64_t to_ns);
void jit_stats_done(struct jit_stats *stats);

const char *jit_trigger_name(enum jit_trigger trigger); /* "foreground" */

#endif
