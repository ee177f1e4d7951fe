/*
 * sample_unwinder: the user frames of samples that carry registers and stack bytes, unwound as they come.
 *
 * Brings together what a sample carries (with it, the kernel's callchain), what the trace knows of the
 * process's mappings, the images' files, and its methods. Belongs to one thread.
 */
#ifndef CLRPERF_COLLECT_SAMPLE_UNWINDER_H
#define CLRPERF_COLLECT_SAMPLE_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/runtime_names.h"
#include "read/perf_record.h"
#include "trace/builder.h"
#include "unwind/process_code.h"

enum { UNWOUND_FRAMES_MAX = 1024 };

struct unwound_stack {
    const uint64_t *ips; /* leaf first; valid until the next one */
    const bool *exact;   /* the frame goes on there, rather than behind a call */
    size_t count;
    enum stack_end end;
    bool leaf_is_strange; /* in generated code of which nothing tells: a stub, or it is gone */
};

struct sample_unwinder;

/*
 * What samples are of, and how their processes, rows of the trace, are reached. All but open() may be NULL:
 * for a process that is gone, whose code is read from files then.
 */
struct sample_sources {
    const struct machine *machine;
    uint64_t registers; /* in a sample, by asm/perf_regs.h */
    bool own_kernel;    /* its vdso is ours */
    /* A file as the process sees it; the caller closes it. */
    int (*open)(void *user, uint32_t process, const char *path);
    /* Its memory at the time of a sample or later, all or nothing; must not wait for ever. */
    bool (*read)(void *user, uint32_t process, uint64_t time_ns, uint64_t addr, void *into, size_t size);
    /* What its memory tells of the method that begins there is about to be read. NULL is fine. */
    void (*follow_method)(void *user, uint32_t process, uint64_t time_ns, uint64_t begin);
    /*
     * Finds the method that holds an address of generated code at the time of a sample and tells
     * sample_unwinder_method(), or the trace of an image there. False when nobody could be asked yet.
     */
    bool (*find_method)(void *user, uint32_t process, uint64_t addr, uint64_t time_ns);
    /* Tells the trace what the process has mapped by now. */
    void (*refresh)(void *user, uint32_t process);
    void *user;
};

/* `b` is borrowed, `sources` is copied. */
struct sample_unwinder *sample_unwinder_new(struct trace_builder *b, const struct sample_sources *sources);
/* NULL is fine. */
void sample_unwinder_free(struct sample_unwinder *unwinder);

/* A method came or went. */
void sample_unwinder_method(struct sample_unwinder *unwinder, uint32_t process,
                            const struct method_place *method, bool ends);
/* The kernel said that something was mapped there; the trace has it already. */
void sample_unwinder_mapped(struct sample_unwinder *unwinder, uint32_t process, uint64_t addr);
/*
 * The frames of a sample of a process of the trace's. `kernel_chain`: the user frames that the kernel found.
 * False when the sample carries no user registers: then there is nothing to unwind.
 */
bool sample_unwinder_run(struct sample_unwinder *unwinder, uint32_t process, enum sample_kind kind,
                         const struct perf_sample *sample, const uint64_t *kernel_chain, size_t kernel_count,
                         struct unwound_stack *out);

/*
 * How many bytes of its stack a sample needs to be unwound, as learnt from the thread's whole stacks so far;
 * UINT64_MAX when that is not known.
 */
uint64_t sample_unwinder_need(const struct sample_unwinder *unwinder, const struct perf_sample *sample);

/* Whether samples should come soon: of some the rest of the stack is read in memory, while it is still there.
 */
bool sample_unwinder_is_pressed(const struct sample_unwinder *unwinder);

/* Tells the trace how many frames were found in each way, by kind of sample, when there were any. */
void sample_unwinder_fact(const struct sample_unwinder *unwinder);

#endif
