/*
 * runtime_work: what the .NET runtime was doing in each stack, decided without symbols of it.
 *
 * A stack is judged by its end, from the innermost managed frame to the leaf: the images there, the
 * runtime's entry that managed code called, and, where no managed frame is, by its thread's name; and by what
 * the runtime told of its collections at the time. The rules are listed in docs/RUNTIME_WORK.md.
 */
#ifndef CLRPERF_ANALYSE_RUNTIME_WORK_H
#define CLRPERF_ANALYSE_RUNTIME_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/gc_history.h"
#include "trace/trace.h"

enum runtime_work_class {
    WORK_USER,       /* the program's and its libraries' own code, with the kernel's and libc's work for it */
    WORK_GC,         /* collecting; where the runtime told nothing of that, allocating too */
    WORK_ALLOCATION, /* the slow path: finding memory and clearing it */
    WORK_JIT,        /* compiling */
    WORK_TIERING,    /* counting calls, loops and types of code that may be compiled again */
    WORK_TYPES,      /* loading types, making methods ready to run, reflection inside the runtime */
    WORK_EXCEPTION,  /* throwing: looking for handlers, unwinding */
    WORK_STUB,       /* in generated code that belongs to no method */
    WORK_SUSPENSION, /* waiting until a collection lets threads go on */
    WORK_LOCK,       /* taking and leaving locks, interlocked exchanges, waiting for others by spinning */
    WORK_THREAD_POOL,
    WORK_FINALIZER,
    WORK_OTHER, /* in the runtime, for a reason that could not be told */
    WORK_CLASSES
};

/* "GC", "user code", ...; static. */
const char *runtime_work_name(enum runtime_work_class work);
/* As a key of JSON: "gc", "user". */
const char *runtime_work_key(enum runtime_work_class work);

struct runtime_work_stack;
struct runtime_work_function;

struct runtime_work {
    const struct trace *trace; /* borrowed */
    struct runtime_work_stack *stacks;
    struct runtime_work_function *functions;
    uint8_t *threads;
    bool has_runtime; /* there is a frame of the runtime's; without one nothing can be said */
};

/* Looks at every stack of the trace, which must have its names and must not change. The caller ends it. */
void runtime_work_init(struct runtime_work *work, const struct trace *t);
void runtime_work_done(struct runtime_work *work);

/*
 * What a stack's sample on a thread is, at such a time. *out_frames, which may be NULL, is the number of
 * frames from the leaf on that are the runtime's part; 0 for WORK_USER.
 */
enum runtime_work_class runtime_work_of(const struct runtime_work *work, uint32_t stack, uint32_t thread,
                                        enum gc_time when, uint32_t *out_frames);
/* Whether the frame is the runtime's own, wherever in a stack it is. */
bool runtime_work_is_own(const struct runtime_work *work, uint32_t location);

#endif
