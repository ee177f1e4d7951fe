/*
 * taken_threads: the threads of one process at one look: what each was doing, its registers and its stack's
 * bytes.
 */
#ifndef CLRPERF_COLLECT_TAKEN_THREADS_H
#define CLRPERF_COLLECT_TAKEN_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/memory.h"
#include "collect/thread_stopper.h"
#include "collect/thread_wait.h"

enum { TAKEN_THREADS_MAX = 1 << 16 };

struct taken_thread {
    pid_t tid, ns_tid;  /* in our pid namespace, and as the process has it itself */
    char *name;         /* as the kernel has it; "" when unknown. Owned */
    char state;         /* of /proc/TID/stat before the look: R S D T t Z; 0 unknown */
    char *waiting_on;   /* of thread_wait_describe(), "" when it is in no system call. Owned */
    const char *signal; /* of a core dump: what it died of, "SIGSEGV", or NULL */
    bool has_fault;     /* that was for the use of an address, which is `fault_addr` */
    uint64_t fault_addr;
    char *problem;                     /* why it has no stack, or NULL. Owned */
    struct thread_registers registers; /* where there is no problem */
    uint8_t *stack;                    /* owned */
    size_t stack_bytes;
    uint64_t stopped_ns;  /* 0: it was not stopped */
    uint32_t trace_stack; /* once unwound: its stack in the trace, or 0 */
};

struct thread_numbers {
    pid_t tid, ns_tid; /* as above */
};

/* All zero at first. */
struct taken_threads {
    struct taken_thread *rows; /* sorted by tid where they are a running process's */
    size_t count, capacity;
    struct thread_numbers *others; /* the process's threads that were not asked for */
    size_t other_count, other_capacity;
};

void taken_threads_done(struct taken_threads *threads);
/* Starts a new look: the threads of the last are gone. */
void taken_threads_renew(struct taken_threads *threads);
/* The next one, to be filled in. */
struct taken_thread *taken_threads_add(struct taken_threads *threads, pid_t tid);
/* One that is not taken. */
void taken_threads_add_other(struct taken_threads *threads, pid_t tid, pid_t ns_tid);

/*
 * Takes the threads of the running process `pid`, or only `only_tid`, each stopped for a moment, in place of
 * those of the last look. ERROR_PERMISSION when not even one may be looked at, ERROR_TARGET when there is
 * none. What they wait for is told afterwards, out of the process's memory.
 */
bool taken_threads_take(struct taken_threads *threads, pid_t pid, struct thread_stopper *stopper,
                        pid_t only_tid, struct error *err);
void taken_threads_describe_waits(struct taken_threads *threads, pid_t pid, const struct memory *memory);
/* What one waits for that has no problem. */
void taken_thread_describe_wait(struct taken_thread *thread, const struct thread_wait_sources *sources);

#endif
