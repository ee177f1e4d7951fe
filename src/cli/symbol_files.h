/*
 * symbol_files: for each file that managed code lies in, an ELF file with its symbols, where perf looks for
 * it.
 */
#ifndef CLRPERF_CLI_SYMBOL_FILES_H
#define CLRPERF_CLI_SYMBOL_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/code_listing.h"

struct symbol_files {
    size_t written;
    bool found_anyway; /* perf looks there without being told */
};

/*
 * Writes below `folder`, which is made when it is not there: at the path of each image with precompiled code,
 * and at that of the memory file of jitted code. perf --symfs takes all files from there, so for native
 * images a link to them is left, and one to their debug files; not so in /usr/lib/debug, where perf looks
 * besides. Files that are there are replaced.
 */
bool symbol_files_write(struct code_listing *listing, const char *folder, struct symbol_files *out,
                        struct error *err);

#endif
