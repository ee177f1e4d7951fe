/*
 * record_stream: `record -o FILE.nettrace`: what a runtime sends, as it sends it; what dotnet-trace does.
 */
#ifndef CLRPERF_CLI_RECORD_STREAM_H
#define CLRPERF_CLI_RECORD_STREAM_H

#include <stdbool.h>

#include "base/error.h"
#include "cli/record_values.h"
#include "cli/verb.h"

/* The file's name, or --format, asks for one; and no samples of the kernel's are wanted, which have no place
 * in it. */
bool record_stream_is_meant(const struct record_values *v);
bool record_stream(const struct record_values *v, struct verb_call *call, struct error *err);

#endif
