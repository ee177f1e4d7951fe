/*
 * stack_view: one look at a process's threads with everything that is shown of it.
 */
#ifndef CLRPERF_CLI_STACK_VIEW_H
#define CLRPERF_CLI_STACK_VIEW_H

#include "analyse/shown_stack.h"
#include "analyse/wait_cycle.h"
#include "base/json_writer.h"
#include "cli/stack_async.h"
#include "clr/managed_threads.h"
#include "collect/process_stacks.h"

enum stack_lock_kind {
    STACK_LOCK_NONE,
    STACK_LOCK_MONITOR, /* it waits to enter a monitor */
    STACK_LOCK_SIGNAL,  /* it waits in Monitor.Wait to be signalled */
    STACK_LOCK_LOCK,    /* it waits for a System.Threading.Lock */
    STACK_LOCK_TASK,    /* it waits for a task that cannot end without another thread */
    STACK_LOCK_THREAD,  /* it waits for the end of a thread */
};

/* What a thread waits for, by the runtime's own records. */
struct stack_lock {
    enum stack_lock_kind kind;
    uint64_t object; /* 0: not known */
    char *type;      /* of the object, or NULL. Owned */
    size_t owner;    /* row of the thread that holds it, that the task needs, or that is to end; WAIT_NOBODY:
                        none does, or it is not known */
    pid_t owner_tid; /* the same where it has no row, as it was not asked for; or 0 */
    bool timed;      /* it gives up after a while */
    bool abandoned;  /* who holds it has ended: nobody will leave it. owner_tid: as the process saw it */
};

struct stack_row {
    const struct taken_thread *thread; /* of the look */
    char *name;                        /* of stack_names_read(); "" when unknown. Owned */
    struct shown_stack *stack;         /* owned, or NULL when there is none: thread->problem */
    bool managed;                      /* managed code is on its stack */
    const char *idle;                  /* what it is there for when it is idle by design, or NULL */
    const char *waits;                 /* managed_wait_name(), or NULL */
    bool waits_by_condition;           /* by what Monitor.Wait is made of from .NET 11 on */
    bool executes;                     /* TASK_EXECUTE is on its stack */
    size_t join_caller;                /* stack_join_caller(), 0 where it does not wait in Thread.Join */
    struct stack_lock lock;
    uint64_t waits_at; /* the object, a monitor's or a lock, that it waits at for a signal; 0: none */
    bool hidden;       /* others were asked for: by stack_view_choose() */
    uint32_t cycle;    /* number of the deadlock it is part of, or 0 */
    uint32_t node;     /* of the profile: equal stacks have equal ones */
    size_t group;      /* 1 + the first row that it is shown with; 0: not shown yet */
};

struct stack_exception {
    char *type;    /* with its namespace. Owned */
    char *message; /* "" when it has none of its own. Owned */
};

struct stack_view {
    const struct process_stacks *stacks; /* borrowed */
    struct trace_builder b;
    uint32_t process; /* row of the trace */
    struct profile *p;
    struct stack_row *rows; /* as the look's threads */
    size_t row_count;
    uint64_t stopped_max_ns, stopped_sum_ns; /* of those that are not hidden, as the next three */
    size_t shown_count, stopped_count, whole;
    size_t deadlocks;
    struct managed_threads threads; /* of stack_threads_of(), with the next two */
    bool threads_asked;
    struct error threads_problem;
    struct error locks_problem;         /* kind ERROR_NONE: locks were looked at */
    struct stack_exception *exceptions; /* of who died, each the cause of the one before. Owned */
    size_t exception_count, exception_capacity;
    struct stack_async *async; /* owned; NULL: it was not asked for */
    double started_s;          /* CLOCK_REALTIME of the look; 0: of a core dump */
};

/* After the stacks were unwound into view->b and its names were found. */
bool stack_view_make(struct stack_view *view, const struct process_stacks *stacks, bool raw_names,
                     struct error *err);
/* Hides all threads but those whose names match `glob`, as glob_matches() has it. False when none does. */
bool stack_view_choose(struct stack_view *view, const char *glob);
void stack_view_done(struct stack_view *view);

/* What a thread waits for, in one text: .NET's words, with the kernel's behind. "" when it runs. */
void stack_row_wait(const struct stack_view *view, const struct stack_row *row, struct buffer *out);
/* "monitor of LockB 0x7f12 held by thread 4711", "task Task<int> 0x7f34 that needs thread 4711", "end of
 * thread 4711"; nothing when it waits for none of them. */
void stack_row_lock(const struct stack_view *view, const struct stack_row *row, struct buffer *out);
/* The first row of a deadlock, 1 to view->deadlocks; the next is the owner of what it waits for, and so on.
 */
size_t stack_view_cycle(const struct stack_view *view, uint32_t cycle);
const char *stack_lock_kind_name(enum stack_lock_kind kind);
/* The thread that holds it, that the task needs, or that is to end; 0: none does, or it is not known. */
pid_t stack_lock_owner(const struct stack_view *view, const struct stack_lock *lock);
/* "running", "sleeping", ...; NULL when unknown */
const char *stack_row_state(const struct stack_row *row);

struct stack_print {
    bool managed_only, idle_too;
    size_t width; /* of the terminal; 0: any */
};

/* For people. */
void stack_view_text(struct stack_view *view, const struct stack_print *how, struct buffer *out);
/* As CONTRACT says, clrperf.stack/1. */
void stack_view_json(const struct stack_view *view, bool managed_only, struct json_writer *w);

#endif
