/*
 * shown_stack: one sample's stack as named frames, the leaf first.
 */
#ifndef CLRPERF_ANALYSE_SHOWN_STACK_H
#define CLRPERF_ANALYSE_SHOWN_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/profile.h"
#include "trace/trace.h"

struct shown_frame {
    const struct profile_frame *frame;     /* the profile's */
    const struct trace_location *location; /* the trace's */
};

struct shown_stack {
    struct shown_frame frames[TRACE_STACK_DEPTH_MAX];
    size_t count;
    enum stack_end end;
};

/* `node` of `p` is what a sample with `stack` of `t` became there. */
void shown_stack_read(const struct trace *t, uint32_t stack, const struct profile *p, uint32_t node,
                      struct shown_stack *out);
/* Whether its name, as people read it, is that of a method, with or without parameters. */
bool shown_frame_is_called(const struct shown_frame *frame, const char *method);
/* Code of a .NET program or library, however compiled. */
bool shown_frame_is_managed(const struct shown_frame *frame);

#endif
