/*
 * core_command: the command line of a core dump's process, from where the kernel put it.
 *
 * A program begins with a stack that holds argc, pointers to its arguments, 0, pointers to its environment,
 * 0, and the auxiliary vector (System V ABI, "Initial Process Stack"). The dump tells the vector, too, and
 * where the random bytes above it lie: so the place is found without knowing where the stack began.
 */
#ifndef CLRPERF_COLLECT_CORE_COMMAND_H
#define CLRPERF_COLLECT_CORE_COMMAND_H

#include "base/buffer.h"
#include "read/core_file.h"

enum { CORE_COMMAND_ARGUMENTS_MAX = 64, CORE_COMMAND_ARGUMENT_BYTES_MAX = 4096 };

/*
 * Appends the arguments, each with a NUL, as /proc/PID/cmdline has them; of more than 64, or longer ones, the
 * beginning. False when they are not in the dump.
 */
bool core_command_read(const struct core_file *core, struct buffer *out);

#endif
