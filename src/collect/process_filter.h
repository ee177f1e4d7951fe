/*
 * process_filter: lets a system-wide event sample only chosen processes.
 *
 * A BPF program of 11 instructions that looks the current process up in a hash map; the kernel drops the
 * sample before it walks a stack. One instance serves the events of all CPUs. Where BPF is not to be had,
 * the caller filters what comes out of the rings.
 */
#ifndef CLRPERF_COLLECT_PROCESS_FILTER_H
#define CLRPERF_COLLECT_PROCESS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct process_filter {
    int map_fd, program_fd; /* -1 when closed */
};

/* Fails with the kernel's reason, also when we do not see pids as the kernel does (a pid namespace). */
bool process_filter_open(struct process_filter *filter, struct error *err);
void process_filter_close(struct process_filter *filter);
bool process_filter_add(const struct process_filter *filter, uint32_t pid);
void process_filter_remove(const struct process_filter *filter, uint32_t pid);
bool process_filter_attach(const struct process_filter *filter, int event_fd, struct error *err);

#endif
