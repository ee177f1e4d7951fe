/*
 * live_stacks: the user frames of the watched processes' samples, unwound while the recording runs.
 *
 * Brings together what a sample carries (registers, stack bytes, the kernel's callchain), what the trace
 * knows of the process's mappings, the images' files, and the process's methods, which collect/memory_names
 * finds. Belongs to one thread.
 */
#ifndef CLRPERF_COLLECT_LIVE_STACKS_H
#define CLRPERF_COLLECT_LIVE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/memory_names.h"
#include "collect/target_files.h"
#include "read/perf_record.h"
#include "trace/builder.h"
#include "unwind/process_code.h"

enum { LIVE_STACK_FRAMES_MAX = 1024 };

struct live_stack {
    const uint64_t *ips; /* leaf first; valid until the next one */
    const bool *exact;   /* the frame goes on there, rather than behind a call */
    size_t count;
    enum stack_end end;
};

struct live_stacks;

/* All borrowed. */
struct live_stacks *live_stacks_new(struct trace_builder *b, const struct target_files *files,
                                    struct memory_names *memory);
/* NULL is fine. */
void live_stacks_free(struct live_stacks *stacks);

/* A method came or went. */
void live_stacks_method(struct live_stacks *stacks, uint32_t process, const struct method_place *method,
                        bool ends);
/* The kernel said that something was mapped there; the trace has it already. */
void live_stacks_mapped(struct live_stacks *stacks, uint32_t process, uint64_t addr);
/*
 * The frames of a sample of a process of the trace's. `kernel_chain`: the user frames that the kernel found.
 * False when the sample carries no user registers: then there is nothing to unwind.
 */
bool live_stacks_unwind(struct live_stacks *stacks, uint32_t process, const struct perf_sample *sample,
                        const uint64_t *kernel_chain, size_t kernel_count, struct live_stack *out);

/*
 * How many bytes of its stack a sample needs to be unwound, as learnt from the thread's whole stacks so far;
 * UINT64_MAX when that is not known.
 */
uint64_t live_stacks_need(const struct live_stacks *stacks, const struct perf_sample *sample);

/* How many frames were found in each way (enum unwind_found). */
const uint64_t *live_stacks_found(const struct live_stacks *stacks);

#endif
