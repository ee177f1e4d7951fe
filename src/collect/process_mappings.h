/*
 * process_mappings: what a process has mapped, one mapping after the other.
 */
#ifndef CLRPERF_COLLECT_PROCESS_MAPPINGS_H
#define CLRPERF_COLLECT_PROCESS_MAPPINGS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "read/procfs.h"

enum mappings_wanted { MAPPINGS_ALL, MAPPINGS_OF_FILES, MAPPINGS_EXECUTABLE, MAPPINGS_READABLE };

/*
 * `path`: nothing in it is escaped, and " (deleted)" is taken away; empty when it is longer than 4,095 bytes.
 * It is there during the call only. Return false to stop.
 */
typedef bool process_mapping_fn(void *user, const struct proc_mapping *mapping);

/*
 * Tells of those that are wanted, by address. The process goes on meanwhile: one may be told twice, in
 * pieces. Nothing is told of a thread of the kernel. Fails as proc_file_read().
 */
bool process_mappings_each(pid_t pid, enum mappings_wanted wanted, process_mapping_fn *emit, void *user,
                           struct error *err);

/* How the kernel is asked: one by one (PROCMAP_QUERY, from Linux 6.11 on), or for the text of all. */
enum mappings_way { MAPPINGS_ASKED, MAPPINGS_READ };
/* The same in one way only. ERROR_UNSUPPORTED where the kernel does not have it. */
bool process_mappings_each_by(pid_t pid, enum mappings_way way, enum mappings_wanted wanted,
                              process_mapping_fn *emit, void *user, struct error *err);

#endif
