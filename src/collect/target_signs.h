/*
 * target_signs: whether a process may have a .NET runtime, without a helper process.
 */
#ifndef CLRPERF_COLLECT_TARGET_SIGNS_H
#define CLRPERF_COLLECT_TARGET_SIGNS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"

enum { TARGET_SIGNS_BYTES_MAX = 32 << 20 }; /* of a list of mappings */

/*
 * A cheap look that most processes do not pass, so that listing a machine takes milliseconds: a runtime has
 * several threads, and what it maps has telling names. One that starts just now may not have them yet.
 * `scratch` has room for TARGET_SIGNS_BYTES_MAX.
 */
bool target_may_be_dotnet(pid_t pid, struct buffer *scratch);

#endif
