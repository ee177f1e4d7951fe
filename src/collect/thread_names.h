/*
 * thread_names: the names that a program gave its threads, where the kernel has cut them.
 *
 * The kernel keeps 15 bytes of a name (prctl(2), PR_SET_NAME): "order-worker-12" may be any of a hundred. The
 * runtime has them whole, for as long as the thread lives.
 */
#ifndef CLRPERF_COLLECT_THREAD_NAMES_H
#define CLRPERF_COLLECT_THREAD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "clr/code_walk.h"
#include "trace/builder.h"

/* Whether the kernel's name is likely to be cut. Those of the runtime's own threads nearly always are, and
 * say enough. */
bool thread_name_is_cut(const char *name);
/* Whether `name` is what the kernel cut: else the thread was renamed since, or was not read at rest. */
bool thread_name_extends(const char *cut, struct span name);
/* Those of the process that live and have a cut name get their whole one, as far as it can be read. */
void thread_names_extend(struct trace_builder *b, uint32_t process, struct code_walk *walk);

#endif
