/*
 * process_facts: what events of a stream tell of the process they come from.
 */
#ifndef CLRPERF_IMPORT_PROCESS_FACTS_H
#define CLRPERF_IMPORT_PROCESS_FACTS_H

#include "base/cursor.h"
#include "trace/builder.h"

/* The payload of ProcessInfo: its command line, by which it is named when it has no name, and the machine's
 * kind. */
void process_facts_command(struct trace_builder *b, uint32_t process, struct span payload);
/* The payload of Runtime/Start: the runtime's version. */
void process_facts_runtime(struct trace_builder *b, uint32_t process, struct span payload);

#endif
