/*
 * trace: everything one capture knows, as tables whose rows refer to each other by id.
 *
 * Ids are 1 and up; 0 means none. Rows are plain data. While a source fills it, a trace belongs to
 * its builder (trace/builder.h); afterwards it is read-only but for the names, which the symbolizer
 * adds. Times are CLOCK_MONOTONIC nanoseconds; addresses are virtual, in the process.
 */
#ifndef CLRPERF_TRACE_TRACE_H
#define CLRPERF_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/intern.h"
#include "trace/event_course.h"

enum {
    /* Deeper stacks are cut at the root's end and marked truncated. */
    TRACE_STACK_DEPTH_MAX = 512,
    /* Of functions that were inlined at one location. */
    TRACE_INLINED_MAX = 64,
    /* An event with a larger payload is not kept: runtimes send 64 KiB at most. */
    TRACE_PAYLOAD_BYTES_MAX = 1 << 16,
};

/* What kind of code runs at a location. Written to captures: append only. */
enum code_kind {
    CODE_UNKNOWN,
    CODE_KERNEL,
    CODE_NATIVE,
    CODE_RUNTIME, /* native code of the .NET runtime itself: libcoreclr, libclrjit, ... */
    CODE_R2R,     /* precompiled managed code */
    CODE_JIT,
    CODE_DYNAMIC, /* jitted, without metadata: DynamicMethod, IL stubs */
    CODE_STUB,    /* machine code the runtime generates that belongs to no method */
    CODE_IDLE,
    CODE_KINDS
};

/* How well a managed method was compiled. Written to captures: append only. */
enum code_tier {
    TIER_NONE,
    TIER_R2R,
    TIER_0,
    TIER_0_INSTRUMENTED,
    TIER_OSR,
    TIER_1,
    TIER_OPTIMIZED,
    CODE_TIERS
};

/* Who named a location. Written to captures: append only. */
enum resolver {
    RESOLVER_NONE,
    RESOLVER_KALLSYMS,
    RESOLVER_VDSO,
    RESOLVER_ELF_SYMTAB,
    RESOLVER_ELF_DEBUG,     /* a separate debug file */
    RESOLVER_ELF_MINIDEBUG, /* .gnu_debugdata */
    RESOLVER_ELF_DYNSYM,
    RESOLVER_EH_FRAME, /* function identity only: IMAGE!0xOFFSET */
    RESOLVER_QCALL,
    RESOLVER_R2R,
    RESOLVER_EVENTPIPE,
    RESOLVER_MEMORY,
    RESOLVER_PERF_MAP,
    RESOLVER_JITDUMP,
    RESOLVER_STUB,
    RESOLVER_IMPORTED,   /* the name came with the imported file */
    RESOLVER_JIT_HELPER, /* the runtime's table of what jitted code calls */
    RESOLVER_CODE,       /* as EH_FRAME, by the code that refers to functions: some starts are not found */
    RESOLVER_FCALL,      /* the runtime's tables of functions that implement methods */
    RESOLVER_AOT,        /* what a Native AOT program carries for its stack traces */
    RESOLVERS
};

/* Why a user frame has no name. Written to captures: append only. */
enum unnamed_cause {
    UNNAMED_NOT,
    UNNAMED_NO_MAPPING,  /* the address lies in no known mapping */
    UNNAMED_NO_IMAGE,    /* the mapped file could not be opened or read */
    UNNAMED_NO_SYMBOL,   /* the image is readable and says nothing about the address */
    UNNAMED_JIT_UNKNOWN, /* in code-heap memory, but no method is known there */
    UNNAMED_NOT_TRIED,   /* the capture was never symbolized */
    UNNAMED_CAUSES
};

enum image_kind {
    IMAGE_UNKNOWN,
    IMAGE_ELF,
    IMAGE_PE,
    IMAGE_VDSO,
    IMAGE_ANON,
    IMAGE_JIT,
    IMAGE_KERNEL,
    IMAGE_KINDS
};

/* How a stack ended. The first ids of the stack table are these roots. */
enum stack_end { STACK_WHOLE = 1, STACK_TRUNCATED, STACK_BROKEN, STACK_ROOTS };

/* What a sample observed. Written to captures: append only. */
enum sample_kind {
    SAMPLE_CPU,
    SAMPLE_WAIT,
    SAMPLE_WAKE,
    SAMPLE_EVENT,
    SAMPLE_WALL, /* the thread was there; whether it ran on a CPU is not known */
    SAMPLE_KINDS
};

/* Why something was lost. Written to captures: append only. */
enum loss_reason {
    LOSS_RING,      /* the kernel's ring was full */
    LOSS_THROTTLED, /* the kernel paused the event: intervals, not samples, are counted */
    LOSS_MALFORMED, /* a record that is not what its format says */
    LOSS_WRITE,     /* could not be written to disk */
    LOSS_RUNTIME,   /* events the runtime dropped */
    LOSS_QUEUE,     /* our own bounded queue was full */
    LOSS_REASONS
};

struct trace_image {
    uint32_t path;     /* string */
    uint32_t build_id; /* string: build id or MVID in hex, or "" */
    uint32_t device_major, device_minor;
    uint64_t inode;
    uint8_t kind; /* enum image_kind */
};

struct trace_process {
    uint32_t pid, ns_pid;
    uint32_t name;            /* string: the entry assembly's or executable's name */
    uint32_t command_line;    /* string */
    uint32_t runtime_version; /* string, "" when not a .NET process */
    uint32_t container;       /* string */
    uint64_t start_ticks;     /* field 22 of /proc/PID/stat, 0 unknown */
    uint64_t from_ns, to_ns;  /* 0: already there / still there */
};

struct trace_thread {
    uint32_t process;
    uint32_t tid;
    uint32_t name; /* string, the latest */
    uint64_t from_ns, to_ns;
};

struct trace_mapping {
    uint32_t process;
    uint32_t image;
    uint64_t start, end;
    uint64_t file_off;
    uint64_t from_ns, to_ns;
};

/* A method's machine code as the runtime announced it: what lived at an address, and when. */
/* From_ns of code that cannot be freed, and was there before any sample in it. */
enum { CODE_FROM_EVER = 1 };

struct trace_code {
    uint32_t process;
    uint32_t function;
    uint64_t addr;
    uint64_t size_bytes;
    uint64_t from_ns, to_ns; /* 0: since before / until after the capture */
    uint32_t module_path;    /* string: the assembly's file as the target sees it, or "" */
    uint32_t token;          /* metadata token of the method in that assembly, or 0 */
    uint8_t tier;
    uint8_t resolver;
};

struct trace_function {
    uint32_t name;        /* string: the runtime's or linker's own spelling */
    uint32_t module;      /* string: "System.Private.CoreLib", "libc.so.6", "[kernel]" */
    uint32_t type_params; /* string: names for __Canon arguments, "TKey,TValue", or "" */
    uint8_t kind;         /* enum code_kind */
};

struct trace_location {
    uint32_t process; /* 0 for kernel code */
    uint32_t mapping; /* 0 when none covers it */
    uint32_t code;    /* 0 when no method was known there at the time */
    uint32_t inlined; /* row of trace.inlined: the innermost function that the compiler put there; 0: none */
    uint64_t addr;
    uint64_t first_ns;
    /* the name, filled by the symbolizer */
    uint32_t function;
    uint32_t file, line; /* in that function: of a call, where others were inlined */
    uint32_t stub;       /* string: what was seen there while its process lived, or 0; not kept in captures */
    uint32_t il_off;     /* or one of read/il_map.h's marks; not kept in captures */
    uint8_t tier;        /* enum code_tier */
    uint8_t resolver;    /* enum resolver */
    uint8_t unnamed;     /* enum unnamed_cause */
    bool is_return;      /* the address is a return address: the call is before it */
    bool il_known;
    bool line_of_method;   /* `line` is where the method begins: which statement ran is not known */
    uint8_t inlined_count; /* rows from `inlined` on, each inlined into the next, the last into `function` */
};

/* A function that the compiler inlined, and where in it a location is. */
struct trace_inlined {
    uint32_t function;
    uint32_t file, line; /* line 0: not known */
};

/* Interned: a stack is its leaf location upon its callers. Ids below STACK_ROOTS are the roots. */
struct trace_stack {
    uint32_t parent;
    uint32_t location;
};

/* A sampler's looks at a thread that stayed in the same stack, as one row. */
struct sample_run {
    uint32_t samples;
    uint32_t length_ns; /* from the first, whose time the row has, to the last */
};

struct trace_samples { /* columns, in the order they were taken from their source */
    uint64_t *time_ns;
    uint64_t *weight;
    uint32_t *thread;
    uint32_t *stack;
    uint16_t *cpu;
    uint8_t *kind;
    struct sample_run *runs; /* NULL: each row is one sample; not in captures */
    size_t count, capacity;
};

/* A kind of event: of a .NET runtime's provider, or of one in a program. */
struct trace_event_type {
    uint32_t provider; /* string: "Microsoft-Windows-DotNETRuntime" */
    uint32_t name;     /* string; "" where clr/ knows it by its id */
    uint32_t event_id, version;
    /* What the event says of its own payload (clr/event_schema.h); both empty for the runtime's own events.
     */
    uint32_t fields, params; /* strings of any bytes */
    uint64_t keywords;
    uint8_t level;        /* 0: always told, 1 critical, ... 5 verbose */
    uint8_t opcode;       /* 0 info, 1 start, 2 stop, ... */
    uint8_t pointer_size; /* of addresses in payloads: 4 or 8; 0: not known, which means 8 */
    uint8_t description;  /* enum event_description_format: how `fields` and `params` are written */
    /* Events that an importer was asked to count only; not in captures. */
    uint64_t counted, counted_with_stack, counted_bytes;
};

/* Of what a trace_event_type's `fields` and `params` are. Written to captures: append only. */
enum event_description_format {
    EVENT_DESCRIBED_V5, /* as in nettrace 3 to 5: the list of fields from its count on, and the "V2 params" */
    EVENT_DESCRIBED_V6, /* as in nettrace 6: the list of fields from its count on; no params */
};

/* One event as its provider sent it; clr/ says what the payload means. */
struct trace_event {
    uint64_t time_ns;
    uint32_t type;
    uint32_t process;
    uint32_t thread;                     /* 0: none that is known */
    uint32_t stack;                      /* 0: none */
    uint32_t payload_off, payload_bytes; /* in trace.payloads */
};

/* What an event was part of, where its provider keeps track. */
struct trace_event_activity {
    uint32_t event;
    uint8_t id[16], related[16]; /* zero: none */
};

/* What a provider in a process was asked to tell, and when: events that are not there then did not happen. */
struct trace_subscription {
    uint32_t process;
    uint32_t provider; /* string */
    uint64_t keywords;
    uint64_t from_ns, to_ns; /* to_ns 0: to the end of the capture */
    uint8_t level;
};

struct trace_loss {
    uint8_t reason;
    uint32_t process; /* 0: not known whose */
    uint64_t from_ns, to_ns;
    uint64_t count;
};

/* A fact about the whole capture; keys are listed in docs/TRACE_FORMAT.md. */
struct trace_fact {
    uint32_t key, value; /* strings */
};

/* A place where a damaged file lost something. */
struct trace_gap {
    uint64_t file_off, size_bytes;
};

#define TRACE_TABLE(type)                                                                                    \
    struct {                                                                                                 \
        struct type *rows; /* rows[0] is unused */                                                           \
        size_t count;      /* ids are below */                                                               \
        size_t capacity;                                                                                     \
    }

struct trace {
    struct intern strings;
    TRACE_TABLE(trace_image) images;
    TRACE_TABLE(trace_process) processes;
    TRACE_TABLE(trace_thread) threads;
    TRACE_TABLE(trace_mapping) mappings;
    TRACE_TABLE(trace_code) codes;
    TRACE_TABLE(trace_function) functions;
    TRACE_TABLE(trace_location) locations;
    TRACE_TABLE(trace_inlined) inlined;
    TRACE_TABLE(trace_stack) stacks;
    TRACE_TABLE(trace_event_type) event_types;
    TRACE_TABLE(trace_event) events;                    /* in time order per thread of their process only */
    TRACE_TABLE(trace_event_activity) event_activities; /* in the order of events; most have none */
    struct event_course course;                         /* of events that were counted only */
    TRACE_TABLE(trace_subscription) subscriptions;
    struct buffer payloads; /* of events */
    TRACE_TABLE(trace_loss) losses;
    TRACE_TABLE(trace_fact) facts;
    TRACE_TABLE(trace_gap) gaps;
    struct trace_samples samples;
    bool symbolized; /* names were looked up; what has none has none */
    bool complete;   /* the writer ended it in order */
};

void trace_init(struct trace *t);
void trace_done(struct trace *t);

const char *trace_string(const struct trace *t, uint32_t id);
/* Whether a name is "libcoreclr.so!0x2f3a10", of a function without one; *out: where it begins, as linked. */
bool trace_name_is_place(const char *name, uint64_t *out);
/* The same with its size: descriptions of events hold any byte. */
struct span trace_string_span(const struct trace *t, uint32_t id);
uint32_t trace_add_string(struct trace *t, const char *text);
uint32_t trace_add_span(struct trace *t, struct span text);
/* The same of UTF-16LE, kept as UTF-8. */
uint32_t trace_add_utf16(struct trace *t, struct span text);
/* An event's payload, valid until the next event is added. */
struct span trace_event_payload(const struct trace *t, const struct trace_event *event);
/* Bytes of a pointer in it: 4 or 8. */
uint32_t trace_event_pointer_size(const struct trace *t, const struct trace_event *event);
/* Adds an event with this payload. False, and nothing added, when there is no room for it. */
bool trace_push_event(struct trace *t, const struct trace_event *event, struct span payload);
/* Says what the event that was added last belongs to: 16 bytes each, or empty. */
void trace_push_event_activity(struct trace *t, struct span id, struct span related);
/* What an event belongs to, or NULL. */
const struct trace_event_activity *trace_event_activity(const struct trace *t, uint32_t event);
/* Whether it is in no file: jitted code is in none. */
bool trace_location_may_be_jitted(const struct trace *t, const struct trace_location *row);
/* How the stack ended. */
enum stack_end trace_stack_end(const struct trace *t, uint32_t stack);
/* A fact's value, or NULL. */
const char *trace_fact_value(const struct trace *t, const char *key);
/* The same of a number; false, and *out as it was, when it is none. */
bool trace_fact_number(const struct trace *t, const char *key, uint64_t *out);
/* Takes one "name number" off a fact that is a list of those. False at its end. */
bool trace_fact_pair(const char **rest, struct span *name, uint64_t *value);
/* Sets a fact; the last one wins. */
void trace_set_fact(struct trace *t, const char *key, const char *value);
void trace_set_fact_number(struct trace *t, const char *key, uint64_t value);

/* Spelled as CONTRACT.md has them. */
const char *code_kind_name(enum code_kind kind);
/* Whether it runs a method of .NET's, which has a name to be shown as people write it. */
bool code_kind_is_managed(enum code_kind kind);
const char *code_tier_name(enum code_tier tier); /* NULL for TIER_NONE */
const char *resolver_name(enum resolver resolver);
const char *unnamed_cause_name(enum unnamed_cause cause);
const char *loss_reason_name(enum loss_reason reason);

/*
 * Appends a zeroed row to a table and yields its id:
 *   uint32_t id = trace_push(&t->images);
 */
#define trace_push(table)                                                                                    \
    __extension__({                                                                                          \
        (table)->rows =                                                                                      \
            trace_push_((table)->rows, &(table)->count, &(table)->capacity, sizeof *(table)->rows);          \
        (uint32_t)((table)->count - 1);                                                                      \
    })
void *trace_push_(void *rows, size_t *count, size_t *capacity, size_t row_size);

/* From now on rows have runs: of one sample each, until whoever pushed them says more. */
void trace_samples_in_runs(struct trace_samples *s);
void trace_push_sample(struct trace_samples *s, uint64_t time_ns, uint32_t thread, uint32_t stack,
                       uint64_t weight, enum sample_kind kind, uint16_t cpu);

#endif
