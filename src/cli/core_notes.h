/*
 * core_notes: tells the user what a core dump lacks.
 */
#ifndef CLRPERF_CLI_CORE_NOTES_H
#define CLRPERF_CLI_CORE_NOTES_H

#include "collect/core_target.h"

/* After the dump was used: only what was asked for is judged. `no_methods`: why no jitted method has a name,
 * or NULL. */
void core_notes_warn(const struct core_target *core, const struct error *no_methods);

#endif
