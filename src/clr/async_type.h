/*
 * async_type: what a type is among the tasks of a program, and where in its objects that is told.
 *
 * An async method that waits is a box on the heap with the method's state machine in it; mostly it is a Task
 * too. From .NET 11 on the runtime can suspend methods itself: then each await is a Continuation, that of the
 * innermost method leads to its caller's and so on, and all of them have one Task (AsyncHelpers.CoreCLR.cs,
 * RuntimeAsyncTaskContinuation.cs). Fields are found by their names (dotnet/runtime, System.Private.CoreLib:
 * AsyncTaskMethodBuilderT.cs, PoolingAsyncValueTaskMethodBuilderT.cs, Task.cs; those of a state machine are
 * Roslyn's GeneratedNames.cs and GeneratedNameConstants.vb, and of F# tasks dotnet/fsharp,
 * FSharp.Core/resumable.fs and tasks.fs).
 */
#ifndef CLRPERF_CLR_ASYNC_TYPE_H
#define CLRPERF_CLR_ASYNC_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "clr/loaded_types.h"
#include "clr/type_fields.h"

enum async_kind {
    ASYNC_METHOD, /* the box of a state machine; with an `addr` an await that the runtime keeps itself */
    ASYNC_TASK,   /* any other Task: a promise, Task.WhenAll, Task.Run; and the state of Task.WhenEach */
    ASYNC_SOURCE, /* what is awaited and is no Task: a socket's operation, a channel's */
    ASYNC_RUN, /* the Task of methods that the runtime suspends itself: its continuations are their awaits */
    ASYNC_AWAIT, /* such continuations, whose method is told by each: type of the objects, not of what they
                    are */
};

enum {
    ASYNC_AWAITERS_MAX = 16,
    ASYNC_TASK_DONE = 0x1600000, /* of a Task's flags: it ran to its end, failed or was cancelled */
    ASYNC_ARRAY_ITEMS = 16,      /* of an array, behind the MethodTable and the length */
};
#define ASYNC_NO_FIELD TYPE_FIELD_NONE

struct async_type {
    uint64_t table;
    uint8_t kind;      /* enum async_kind */
    bool is_task;      /* it has the fields of a Task */
    bool by_reference; /* its state machine is an object of its own */
    char *name;        /* as the runtime spells it, of a method that of its state machine. Owned */
    char *module;      /* simple name of the assembly, or "". Owned */
    char *path;        /* of its file as the runtime has it, or "". Owned */
    uint32_t token;    /* of a state machine's MoveNext, or 0 */

    /* Offsets from an object's start, ASYNC_NO_FIELD for none; the last three from the state machine's, where
     * there is one. */
    uint32_t flags, continuation; /* of a Task; `continuation` of an ASYNC_AWAIT: the next one */
    uint32_t first;               /* of an ASYNC_RUN: the innermost continuation */
    uint32_t resume;              /* of an ASYNC_AWAIT: where it goes on, a ResumeInfo */
    uint32_t machine;
    uint32_t completes; /* of a worker of Parallel.ForEachAsync, which nobody awaits: the loop, which somebody
                           does */
    uint32_t state;
    int32_t first_await; /* what `state` says at the first await; of F#, where 0 is that it has not waited
                            yet, 1 */
    uint32_t awaiters[ASYNC_AWAITERS_MAX]; /* that hold what is awaited, NULL when it is not that */
    unsigned awaiter_count;
    uint64_t
        resumes;   /* of a method that the runtime suspends itself: what its continuations have in `resume` */
    uint64_t addr; /* of code of it, inside the await; 0: it has a state machine */

    uint64_t count, waiting; /* objects, for whoever counts */
};

/* Fills *out when objects of the type wait or are waited for. Undo with async_type_done(). */
bool async_type_read(struct loaded_types *types, uint64_t table, struct async_type *out);
/* The same of whatever else is awaited. False when it is no type. */
bool async_type_read_source(struct loaded_types *types, uint64_t table, struct async_type *out);
void async_type_done(struct async_type *type);
/* The row of the method that continuations with that `resume` belong to: named by whoever can name code. */
void async_type_of_resume(uint64_t resume, uint64_t addr, struct async_type *out);

/* How to go from an object that continues a task to the task or box that it stands for. */
struct async_link {
    uint64_t table;
    uint32_t next;  /* offset of a reference; ASYNC_NO_FIELD: it stands for nothing we know */
    uint32_t items; /* of a list of such objects: its array; else ASYNC_NO_FIELD */
    uint32_t size;  /* of a list: how many there are */
};
void async_link_read(struct loaded_types *types, uint64_t table, struct async_link *out);

#endif
