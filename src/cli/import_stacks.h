/*
 * import_stacks: unwinds the samples of imported files that carry stack bytes, by the files of this machine.
 */
#ifndef CLRPERF_CLI_IMPORT_STACKS_H
#define CLRPERF_CLI_IMPORT_STACKS_H

#include "import/import.h"

/*
 * Methods that were jitted are asked of a process that still runs. Of one that is gone, no file has their
 * unwind information: their frames are found by frame pointers.
 */
extern const struct import_unwinder import_stacks;

#endif
