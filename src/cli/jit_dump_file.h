/*
 * jit_dump_file: the jitted code of a running process as a jitdump that perf finds.
 *
 * perf inject --jit looks for the event of a process that maps jit-ITS_PID.dump to execute it. The process at
 * hand is not made to do so; we do it in its place, and each method in the file says whose it is. So perf
 * must record us too while the file is written. Where a heap of code grows while perf records, perf forgets
 * the names in it; it would spare only a process that had mapped the dump itself.
 */
#ifndef CLRPERF_CLI_JIT_DUMP_FILE_H
#define CLRPERF_CLI_JIT_DUMP_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/code_listing.h"

struct jit_dump_file {
    char path[PATH_MAX];
    uint64_t methods, with_lines;
    size_t unreadable; /* methods whose bytes could not be read: they are left out */
    bool marked;       /* else the mapping was refused, as where programs may not be executed */
};

/*
 * Writes into `folder`, which is made when it is not there. ERROR_PERMISSION and the like when the census did
 * not come from memory, where the bytes are.
 */
bool jit_dump_file_write(struct code_listing *listing, const char *folder, struct jit_dump_file *out,
                         struct error *err);

#endif
