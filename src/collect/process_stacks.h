/*
 * process_stacks: where all threads of one process are, at one look.
 *
 * The process is a running one, or what a core dump holds of one. Its threads' stacks are unwound and go into
 * a trace, a sample a thread in the order of `threads`; names are looked up later, as those of any trace.
 */
#ifndef CLRPERF_COLLECT_PROCESS_STACKS_H
#define CLRPERF_COLLECT_PROCESS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/memory.h"
#include "clr/code_walk.h"
#include "collect/taken_threads.h"
#include "trace/builder.h"
#include "unwind/process_code.h"
#include "unwind/unwind_images.h"

enum { STACKS_FRAMES_MAX = TRACE_STACK_DEPTH_MAX };

/* What the target is, in one form for all kinds. Borrowed, and alive as long as what is made with it. */
struct stacks_target {
    pid_t pid;
    const struct machine *machine; /* it runs on, or did */
    const struct memory *memory;
    struct module_files files; /* as the target has them */
    bool is_dump;              /* its memory is as it was when the threads were taken */
};

struct process_stacks {
    struct stacks_target target;
    struct unwind_images *images;
    char **paths; /* of images by number; [0] is unused. Owned */
    size_t path_count, path_capacity;
    struct code_walk *walk;       /* NULL: no runtime, or none that can be read */
    struct error walk_error;      /* why, when NULL */
    struct process_code *code;    /* while stacks are unwound */
    struct taken_threads threads; /* of the last look */
};

void process_stacks_init(struct process_stacks *stacks, const struct stacks_target *target);
void process_stacks_done(struct process_stacks *stacks);

/* Finds the runtime's code in the process's memory as it is after the threads were taken, for unwinding. */
void process_stacks_find_code(struct process_stacks *stacks);
/*
 * Reads the unwind tables of an image that is mapped, which unwinding would do when a stack leads into it.
 * For another thread, while the stacks are taken and the code is found.
 */
void process_stacks_read_tables(struct process_stacks *stacks, const struct memory_mapping *m);

/*
 * Unwinds what was taken into `b`, where `process` has its mappings already. Jitted methods on the stacks are
 * told to `b` with their names.
 */
void process_stacks_unwind(struct process_stacks *stacks, struct trace_builder *b, uint32_t process);

/*
 * Adds addresses in the process's code to `b` as locations, one for each in their order, with what tells
 * their names. Returns the first one's row.
 */
uint32_t process_stacks_add_code(struct process_stacks *stacks, struct trace_builder *b, uint32_t process,
                                 const uint64_t *addrs, size_t count);

#endif
