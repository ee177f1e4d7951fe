/* method_code: what a method event says of its code, in the words of a trace. */
#ifndef CLRPERF_CLR_METHOD_CODE_H
#define CLRPERF_CLR_METHOD_CODE_H

#include "clr/runtime_events.h"
#include "trace/trace.h"

/* TIER_NONE: the event does not say, or it is a helper of the runtime. */
enum code_tier method_code_tier(const struct runtime_method_event *m);

#endif
