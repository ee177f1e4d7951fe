/*
 * live_code: what code a running process has, for programs that unwind its stacks to measure how that goes.
 *
 * Files are opened as they are, without the care that record takes: the process is our own test's.
 */
#ifndef CLRPERF_TESTS_LIVE_CODE_H
#define CLRPERF_TESTS_LIVE_CODE_H

#include <sys/types.h>

#include "unwind/process_code.h"

struct live_code {
    pid_t pid;
    struct unwind_images *images;
    struct process_code *code;
    char **files; /* by image number; [0] stands for none */
    size_t file_count, file_capacity;
};

/*
 * `find_method`, as process_code_access has it, gets `live`; it may be NULL. False when the process cannot be
 * looked at. In either case the caller ends with live_code_close().
 */
bool live_code_open(struct live_code *live, pid_t pid, bool (*find_method)(void *live, uint64_t addr));
void live_code_close(struct live_code *live);

/* Something executable was mapped. */
void live_code_map(struct live_code *live, uint64_t start, uint64_t size_bytes, uint64_t file_off,
                   struct span path);
/* Looks at the mappings again. */
bool live_code_scan(struct live_code *live);
bool live_code_read(void *live, uint64_t addr, void *into, size_t size);

#endif
