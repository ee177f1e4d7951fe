/*
 * stream_recording: one runtime's event stream, written to a file as it was sent, or told event by event.
 */
#ifndef CLRPERF_COLLECT_STREAM_RECORDING_H
#define CLRPERF_COLLECT_STREAM_RECORDING_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "clr/stopping_event.h"
#include "collect/event_stream.h"
#include "collect/record_stats.h"

struct stream_recording_options {
    struct event_peer peer;
    const struct event_request *request;
    bool choose; /* the request's choices of events matter, where the runtime has them */
    int out_fd;  /* or -1 */
    /* told of each event, or NULL */
    void (*event)(void *user, const struct nettrace_event *event, uint32_t pointer_size);
    uint64_t duration_ns;            /* 0: until stopped */
    unsigned end_ms, silence_ms;     /* how long the runtime may take to end, and be silent then; 0: usual */
    struct stopping_event *stopping; /* or NULL */
    const volatile sig_atomic_t *stop;              /* set by a signal handler */
    int stop_fd;                                    /* readable when the user pressed Enter, or -1 */
    bool (*started)(void *user, struct error *err); /* the session is there; or NULL */
    void (*looked)(void *user, uint64_t now_ns);    /* what had come was taken; or NULL */
    void (*drained)(void *user);                    /* all events were told; their types go now; or NULL */
    void (*progress)(void *user, const struct record_progress *now);
    void (*note)(void *user, const char *text);
    void *user;
};

/*
 * Records to the end, of which *stats tells; what had come before a failure is in the file. A runtime that
 * does not end its stream is given up after a while: the file is then cut, and `note` is told.
 */
bool stream_recording_run(const struct stream_recording_options *options, struct record_stats *stats,
                          struct error *err);

#endif
