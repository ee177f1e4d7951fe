/*
 * task_run: the task that a thread runs, and who waits in a call for its end.
 *
 * A task that runs says so: of a delegate in its flags, of an async method in its state machine. The thread
 * that runs it has both the task and the place where its current task is noted on its stack, or the state
 * machine in its box. From a task its continuations lead to the event that a waiting thread made for itself:
 * only over what cannot end before it, so that nothing else can set that event (dotnet/runtime,
 * System.Private.CoreLib: Task.cs, AsyncTaskMethodBuilderT.cs, ManualResetEventSlim.cs; alike in .NET 8 to
 * 10).
 */
#ifndef CLRPERF_CLR_TASK_RUN_H
#define CLRPERF_CLR_TASK_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/id_map.h"
#include "clr/loaded_types.h"

/* The method that runs delegates of tasks. */
#define TASK_EXECUTE "System.Threading.Tasks.Task.ExecuteWithThreadLocal"

struct task_type;

struct task_reader {
    struct loaded_types *types; /* borrowed, as the next: what types say does not change */
    struct memory_pages *pages; /* what objects say does */
    struct id_map kind_ids;     /* by MethodTable */
    struct task_type *kinds;    /* of the types that were met; [0] is unused */
    size_t kind_count, kind_capacity;
};

void task_reader_init(struct task_reader *reader, struct loaded_types *types, struct memory_pages *pages);
void task_reader_done(struct task_reader *reader);

/* Has the object at `addr`, any word, read with others at the next memory_pages_fetch(). */
void task_want(struct task_reader *reader, uint64_t addr);
/* Whether at `addr`, any word, there is a Task that some thread runs now. */
bool task_is_running(struct task_reader *reader, uint64_t addr);
/*
 * Whether a thread's stack says that it is this one, of a task that is running. `executes`: TASK_EXECUTE is
 * on it. What is left on a stack of earlier calls can say so, too: it is certain where one thread's stack
 * does, and the others' do not.
 */
bool task_runs_on(struct task_reader *reader, uint64_t task, struct span stack, bool executes);

/* A wait for the end of a task. */
struct task_wait {
    uint64_t task;  /* that is waited for */
    uint64_t event; /* that is set then: an object */
    uint64_t lock;  /* object at whose monitor the thread waits until it is */
};
typedef void task_wait_fn(void *user, const struct task_wait *wait);
/* All waits that cannot end before a task has. */
void task_waits_find(struct task_reader *reader, uint64_t task, task_wait_fn *emit, void *user);
/* Whether by its stack the thread that waits gives up when it is told to, by a CancellationToken. */
bool task_wait_is_cancellable(struct task_reader *reader, const struct task_wait *wait, struct span stack);

#endif
