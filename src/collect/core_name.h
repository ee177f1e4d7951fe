/*
 * core_name: what people call the process of a core dump, as target_label() does of one that runs.
 */
#ifndef CLRPERF_COLLECT_CORE_NAME_H
#define CLRPERF_COLLECT_CORE_NAME_H

#include "base/cursor.h"

/*
 * The entry assembly where `command`, as /proc/PID/cmdline has it, is one of `dotnet`; else `executable`, the
 * kernel's name, whose 15 bytes are made whole by the command. The caller frees.
 */
char *core_name_new(const char *executable, struct span command);

#endif
