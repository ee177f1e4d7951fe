/*
 * record_values: the options of `record`.
 */
#ifndef CLRPERF_CLI_RECORD_VALUES_H
#define CLRPERF_CLI_RECORD_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/event_options.h"
#include "cli/target_options.h"

struct record_values {
    struct target_options target;
    struct event_options asked;
    const char *out, *events;
    uint64_t rate_hz, duration_ns;
    const char *max_loss_text;
    const char *format; /* of dotnet-trace's spelling: besides the event stream */
    const char *port;   /* PATH[,listen|connect] */
    const char *stopping_provider, *stopping_event, *stopping_fields;
    uint8_t resume, show_child_io; /* enum option_switch */
    bool force, json, no_runtime, quiet, frame_pointers;
    bool stacks; /* -g: they are recorded anyway */
};

#endif
