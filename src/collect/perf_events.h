/*
 * perf_events: the kernel's sampling events for what one recording watches, with a ring per CPU.
 *
 * Two ways, by rights and target: one event per CPU for the whole machine, narrowed by a process filter or a
 * cgroup (45 ns a context switch); or one event per thread and CPU that its children inherit (no special
 * rights, 380 ns; each begins with a whole period, so who runs for less has no sample).
 */
#ifndef CLRPERF_COLLECT_PERF_EVENTS_H
#define CLRPERF_COLLECT_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/perf_ring.h"
#include "collect/process_births.h"
#include "collect/process_filter.h"
#include "read/perf_record.h"

struct perf_events_options {
    const pid_t *pids; /* the processes to watch; NULL: everything */
    size_t pid_count;
    int cgroup_fd; /* of a version 2 cgroup's folder, or -1 */
    bool on_exec;  /* what counts begins when the process (one pid) calls exec */
    uint32_t rate_hz;
    size_t ring_pages;           /* a power of two */
    uint64_t user_registers;     /* that samples carry, as in asm/perf_regs.h; 0: none */
    uint32_t user_stack_bytes;   /* of the stack from its pointer up, a multiple of 8 below 64 KiB; 0: none */
    uint32_t switch_stack_bytes; /* the same of samples at context switches */
    bool cpu;                    /* samples CPU time */
    bool context_switches;       /* samples a thread whenever it leaves a CPU; neither: nothing is sampled */
};

enum perf_event_source { PERF_EVENT_CPU, PERF_EVENT_SWITCH, PERF_EVENT_SOURCES };

struct perf_events {
    int *fds;
    size_t count, capacity;
    struct perf_ring *rings; /* one per online CPU */
    int *ring_fds;           /* the event each ring belongs to: to poll */
    size_t ring_count;
    size_t ring_bytes; /* of each */
    bool no_room;      /* for a ring of that size, in the pool of locked memory */
    uint64_t *cpu_ids; /* what the kernel calls events of PERF_EVENT_CPU in their samples, sorted; empty when
                          there is one source only */
    size_t cpu_id_count, cpu_id_capacity;
    enum perf_event_source first_source;
    struct perf_sample_layout layout;
    struct process_filter filter; /* map_fd -1: none */
    struct process_births
        births;         /* that the filter takes in; event_fd -1: it learns of them from the rings */
    bool system_wide;   /* events of others may come: filter them by pid */
    bool kernel;        /* kernel frames too */
    bool hardware;      /* cycles, else the CPU clock */
    uint64_t period_ns; /* CPU time one sample stands for */
    size_t frames_max;  /* of a callchain; the kernel cuts longer ones */
    int kernel_denied;  /* errno with which kernel frames were refused, or 0 */
};

/*
 * Opens everything, disabled. The rings are smaller than asked for, all of them, where the kernel grants no
 * more. Fails with ERROR_PERMISSION and the fix when the kernel forbids, ERROR_TARGET when a process is gone.
 */
bool perf_events_open(const struct perf_events_options *options, struct perf_events *out, struct error *err);
void perf_events_close(struct perf_events *events);
/* What made a sample. */
enum perf_event_source perf_events_source(const struct perf_events *events, uint64_t sample_id);
bool perf_events_enable(const struct perf_events *events, struct error *err);
void perf_events_disable(const struct perf_events *events);
/* Records the kernel dropped for want of room, as it counts them itself; false where it does not
 * (before 6.0). */
bool perf_events_lost(const struct perf_events *events, uint64_t *out_lost);

#endif
