/*
 * process_scan: tells a trace what a process is and has mapped, from /proc and from the kernel's records.
 */
#ifndef CLRPERF_COLLECT_PROCESS_SCAN_H
#define CLRPERF_COLLECT_PROCESS_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "collect/target.h"
#include "read/perf_record.h"
#include "trace/builder.h"

/* Adds a process with what it has mapped and its threads' names. One that is gone leaves a bare row. */
uint32_t process_scan_read(struct trace_builder *b, uint32_t pid, uint64_t time_ns);
void process_scan_name(struct trace_builder *b, uint32_t process, struct span name);
/*
 * What the process is called and where it runs. False, and nothing is added, when `target` is a later process
 * that was given the same number.
 */
bool process_scan_identity(struct trace_builder *b, uint32_t process, const struct target *target);
/* Whether that is known to be one that compiles at run time, and whose memory tells what. */
bool process_scan_has_coreclr(const struct trace *t, uint32_t process);
/* Whether it has the runtime's library mapped, as one does that starts and was not looked at yet. */
bool process_scan_maps_coreclr(const struct trace_builder *b, uint32_t process);
/* Learns when it started, if it is there still and its number is not another one's by now. */
bool process_scan_start(struct trace_builder *b, uint32_t process);
/* What a process of the trace's has mapped by now; what is new of it counts from `time_ns` on. */
void process_scan_mappings(struct trace_builder *b, uint32_t process, uint64_t time_ns);
/* The same, and its threads' names. */
void process_scan_again(struct trace_builder *b, uint32_t process, uint64_t time_ns);
/* Something executable is mapped. `path` as /proc/PID/maps has it, unescaped. */
void process_scan_add_mapping(struct trace_builder *b, uint32_t process, uint64_t start, uint64_t size_bytes,
                              uint64_t file_off, struct span path, uint32_t major, uint32_t minor,
                              uint64_t inode, uint64_t time_ns);
/* What is executable of a memory whose mappings were read already. */
void process_scan_add_memory(struct trace_builder *b, uint32_t process, const struct memory *memory,
                             uint64_t time_ns);
/* A mapping the kernel reports. */
void process_scan_mapping(struct trace_builder *b, uint32_t process, const struct perf_mmap *mmap,
                          uint64_t time_ns);
/* Whether a thread's first frame may lie in a mapping: of the C library or the loader, where threads begin.
 */
bool process_scan_is_root(const struct trace_builder *b, uint32_t mapping);

#endif
