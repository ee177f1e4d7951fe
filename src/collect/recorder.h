/*
 * recorder: one recording from start to stop; fills a trace from the kernel and the runtimes and writes
 * it to a capture as it goes.
 */
#ifndef CLRPERF_COLLECT_RECORDER_H
#define CLRPERF_COLLECT_RECORDER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "clr/stopping_event.h"
#include "collect/diagnostic_port.h"
#include "collect/perf_events.h"
#include "collect/record_stats.h"
#include "collect/target_files.h"
#include "trace/builder.h"
#include "trace/trace_writer.h"

struct recorder_options {
    struct perf_events_options perf;
    uint64_t duration_ns;        /* 0: until stopped */
    const uint64_t *start_ticks; /* of each of perf.pids, as it was chosen; borrowed, or NULL: not known */
    const struct target_list *chosen; /* what was found out of them then; borrowed, or NULL */
    bool kernel_chains;               /* the kernel's own stacks, by frame pointers, nothing unwound */
    bool runtime;                     /* ask .NET runtimes for the names of their methods */
    /* what else to ask them; both borrowed, or NULL: see struct runtime_session_options */
    const struct event_providers *topics;
    const struct event_request *asked;
    uint32_t events_buffer_mb;       /* of each target's memory; 0: usual */
    struct stopping_event *stopping; /* borrowed, or NULL */
    struct diagnostic_port *port;    /* that runtimes call when they start; borrowed, or NULL */
    bool resume;                     /* let them go on once they are listened to */
    bool port_is_ours;               /* only the command that is recorded knows it */
    /* of all that is watched, when that is no list: those that run now, and may have no sample for long */
    const pid_t *present;
    size_t present_count;
    const volatile sig_atomic_t *stop; /* set by a signal handler */
    int stop_fd;                       /* readable when the user pressed Enter, or -1 */
    int release_fd;                    /* a byte written here lets the waiting command go on, or -1 */
    void (*progress)(void *user, const struct record_progress *now); /* about four times a second; or NULL */
    void (*note)(void *user, const char *text); /* something the user should know, once */
    /*
     * The last sample is in the trace, and runtimes are waited for, which still tell of methods and events: a
     * piece of what can be done meanwhile, some milliseconds; first what others do. False when nothing is
     * left. Or NULL.
     */
    bool (*meanwhile)(void *user);
    void *user;
};

struct recorder;

/*
 * Prepares everything and starts sampling. `b` is borrowed and must outlive the recorder.
 * Fails with what the kernel or the target refused.
 */
bool recorder_start(const struct recorder_options *options, struct trace_builder *b, struct recorder **out,
                    struct error *err);
/*
 * Records until the end into `w`, which is borrowed and must outlive the recorder; what was read before a
 * failure is in the trace.
 */
bool recorder_run(struct recorder *r, struct trace_writer *w, struct record_stats *stats, struct error *err);
/* The files of the processes that were watched. Owned by the recorder. */
const struct target_files *recorder_files(const struct recorder *r);
void recorder_free(struct recorder *r);

#endif
