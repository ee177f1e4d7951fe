/*
 * perf_record: one record of the kernel's perf_event stream.
 *
 * The same bytes come out of a ring buffer and lie in a perf.data file. Specified in the Linux source,
 * include/uapi/linux/perf_event.h (enum perf_event_type), and in perf_event_open(2). Which fields a
 * sample has is said by its event's attributes: a struct perf_sample_layout.
 * Decoding copies scalars and borrows the rest; it never allocates.
 */
#ifndef CLRPERF_READ_PERF_RECORD_H
#define CLRPERF_READ_PERF_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"

enum {
    PERF_RECORD_HEADER_BYTES = 8,
    /* PERF_CONTEXT_USER_DEFERRED of kernels from 6.19 on */
    PERF_CONTEXT_DEFERRED_WORD = -640,
};

/* What one event's attributes say about its records. Plain data, computed by perf_sample_layout_of(). */
struct perf_sample_layout {
    uint64_t sample_type; /* PERF_SAMPLE_* */
    uint64_t read_format; /* PERF_FORMAT_* */
    uint64_t branch_sample_type;
    uint32_t user_regs; /* how many registers a sample carries */
    uint32_t intr_regs;
    uint32_t head_bytes;    /* of the fields with fixed places, up to PERIOD */
    uint32_t trailer_bytes; /* of the sample_id behind other records; 0 without sample_id_all */
    int32_t sample_time_at; /* byte offset in a sample record, header included; -1: not there */
    int32_t sample_id_at;
    int32_t trailer_time_at; /* byte offset back from the end of a record; -1: not there */
    int32_t trailer_id_at;
};

struct perf_sample_layout perf_sample_layout_of(const struct perf_event_attr *attr);

/* Who and when: the trailer of records that are not samples. What is absent is 0. */
struct perf_sample_id {
    uint32_t pid, tid;
    uint64_t time_ns;
    uint64_t id, stream_id;
    uint32_t cpu;
};

/* Spans are borrowed from the record. What the layout does not have is 0 or empty. */
struct perf_sample {
    struct perf_sample_id who;
    uint64_t ip, addr;
    uint64_t period;
    struct span callchain; /* u64 words, any alignment; see perf_callchain_split() */
    struct span raw;
    struct span user_regs;     /* u64 words in the order of the mask's bits; empty for a kernel thread */
    uint64_t user_abi;         /* PERF_SAMPLE_REGS_ABI_* */
    struct span user_stack;    /* the bytes that were really copied (dyn_size), from the stack pointer up */
    uint64_t user_stack_asked; /* bytes the kernel reserved for them */
    uint64_t cgroup;
};

struct perf_mmap {
    uint32_t pid, tid;
    uint64_t addr, size_bytes, file_off;
    uint32_t major, minor; /* of the device; 0 when a build id came instead, or in an old MMAP record */
    uint64_t inode, inode_generation;
    struct span build_id; /* or empty */
    uint32_t prot;        /* PROT_*; PROT_EXEC is made up for an MMAP record of code */
    struct span path;     /* "//anon", "[vdso]" and other made-up names too */
};

struct perf_task { /* FORK and EXIT */
    uint32_t pid, ppid, tid, ptid;
    uint64_t time_ns;
};

struct perf_record {
    uint32_t type; /* PERF_RECORD_*; from 64 on the perf tool's own, which are not decoded */
    uint16_t misc;
    struct span body; /* behind the header */
    union {
        struct perf_sample sample; /* SAMPLE */
        struct perf_mmap mmap;     /* MMAP, MMAP2 */
        struct {
            uint32_t pid, tid;
            struct span name;
            bool is_exec;
        } comm;                /* COMM */
        struct perf_task task; /* FORK, EXIT */
        struct {
            uint64_t id, count;
            /* What an event lost in all, without a time, as perf (from 6.1 on) adds it at its end: what LOST
             * told of again, and what no record followed. */
            bool is_sum;
        } lost; /* LOST: records; LOST_SAMPLES: samples, id is 0 */
        struct {
            uint64_t time_ns, id, stream_id;
        } throttle; /* THROTTLE, UNTHROTTLE */
        struct {
            bool out;                      /* the thread leaves the CPU */
            bool preempted;                /* while runnable */
            uint32_t other_pid, other_tid; /* SWITCH_CPU_WIDE: next when out, previous when in */
        } switched;                        /* SWITCH, SWITCH_CPU_WIDE */
    };
    struct perf_sample_id who; /* of a sample too */
};

/*
 * Decodes one record; `bytes` begins with its header and may be longer. Fails with ERROR_INPUT when the
 * record does not hold what its type and the layout ask for. *out is untouched on failure.
 */
bool perf_record_decode(struct span bytes, const struct perf_sample_layout *layout, struct perf_record *out,
                        struct error *err);

/*
 * A copy of a sample's record with at most `keep` bytes of its stack; `sample` is what it was decoded to.
 * Returns how large it is: at most as large as the record, for which `out` has room. 0 when nothing can be
 * left out.
 */
size_t perf_record_cut_stack(struct span record, const struct perf_sample *sample, uint64_t keep,
                             uint8_t *out);

/* The record's time or event id without decoding the rest; 0 when it has none. */
uint64_t perf_record_time_ns(struct span bytes, const struct perf_sample_layout *layout);
uint64_t perf_record_event_id(struct span bytes, const struct perf_sample_layout *layout);

struct perf_callchain {
    const uint64_t *kernel, *user; /* into the caller's array, leaf first */
    size_t kernel_count, user_count;
    bool is_cut;           /* the array was too small: frames at the root's end are missing */
    bool is_user_deferred; /* the user frames come in a later record */
};

/*
 * Splits the callchain of a sample by its PERF_CONTEXT_* words. Frames of a guest or hypervisor are
 * left out. Words in front of the first marker are told apart by their highest bit.
 */
struct perf_callchain perf_callchain_split(struct span words, uint64_t *into, size_t max);

#endif
