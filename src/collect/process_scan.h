/*
 * process_scan: tells a trace what a process is and has mapped, from /proc and from the kernel's records.
 */
#ifndef CLRPERF_COLLECT_PROCESS_SCAN_H
#define CLRPERF_COLLECT_PROCESS_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "read/perf_record.h"
#include "trace/builder.h"

/* Reads everything /proc says about a process and adds it. A process that is gone leaves a bare row. */
uint32_t process_scan_read(struct trace_builder *b, uint32_t pid, uint64_t time_ns);
/* After an exec: what it is called now. Its mappings come as records. */
void process_scan_exec(struct trace_builder *b, uint32_t pid);
/* Something executable is mapped. `path` as /proc/PID/maps has it, unescaped. */
void process_scan_add_mapping(struct trace_builder *b, uint32_t process, uint64_t start, uint64_t size_bytes,
                              uint64_t file_off, struct span path, uint32_t major, uint32_t minor,
                              uint64_t inode, uint64_t time_ns);
/* A mapping the kernel reports. */
void process_scan_mapping(struct trace_builder *b, uint32_t process, const struct perf_mmap *mmap,
                          uint64_t time_ns);
/* Whether a thread's first frame may lie there: in the C library or the loader, where threads begin. */
bool process_scan_is_root(const struct trace_builder *b, uint32_t process, uint64_t addr);

#endif
