/*
 * thread_course: what the threads of a trace did at every moment, as far as samples and events say.
 *
 * A thread that left a CPU (a sample of context switches) is away until it is seen again, by a sample or an
 * event of its own; after that it runs, until it leaves again. When no sample of the CPU sees it run for many
 * periods, that it left was lost, and what it did is not known. Where context switches were not sampled, only
 * samples of the CPU say that a thread ran, and the rest is not known.
 */
#ifndef CLRPERF_ANALYSE_THREAD_COURSE_H
#define CLRPERF_ANALYSE_THREAD_COURSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/gc_history.h"
#include "trace/trace.h"

enum thread_state {
    THREAD_UNKNOWN,
    THREAD_RAN,
    THREAD_BLOCKED, /* left the CPU by itself */
    THREAD_READY,   /* the CPU was taken from it, or it gave way */
    THREAD_OFF,     /* left the CPU; why is not known without the kernel's frames */
    THREAD_LOCK,    /* waited for a lock that somebody held */
    THREAD_GC,      /* stood still for a collection, or made it */
    THREAD_STATES
};

/* Of stretches of threads' time. */
struct thread_times {
    uint64_t ns[THREAD_STATES]; /* the stretches are their sum */
    uint64_t sampled_ns;        /* that samples of the CPU stand for, outside collections */
    uint64_t exceptions;        /* an object that is thrown again counts once */
    double allocated_bytes;
};

struct thread_mark;

struct thread_course {
    const struct trace *trace; /* borrowed */
    struct gc_history gc;
    struct thread_mark *marks; /* by thread, then time */
    size_t mark_count;
    size_t *first;              /* mark by thread; one more than there are threads */
    bool has_cpu, has_switches; /* were sampled */
};

/* The events that it is made of. */
bool thread_course_wants(const char *provider, uint32_t event_id);
void thread_course_init(struct thread_course *course, const struct trace *t);
void thread_course_done(struct thread_course *course);
/* Adds what the thread did from one time to another. */
void thread_course_add(const struct thread_course *course, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
                       struct thread_times *sum);
typedef void thread_course_fn(void *user, uint64_t from_ns, uint64_t to_ns);
/* Each piece of that time of which it is known what the thread did, in order. */
void thread_course_known(const struct thread_course *course, uint32_t thread, uint64_t from_ns,
                         uint64_t to_ns, thread_course_fn *each, void *user);
/*
 * Says that the thread ran for `ns` of the time in which it was not told to be blocked. Returns how much of
 * that there was no room for.
 */
uint64_t thread_times_claim(struct thread_times *times, uint64_t ns);
/* Of times that were summed: what samples say of how long threads ran corrects the rest. */
void thread_times_settle(struct thread_times *times);

#endif
