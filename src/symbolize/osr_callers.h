/*
 * osr_callers: what the kernel takes for the caller of a method that was replaced while it ran (OSR).
 *
 * The body that took over left no return address of its own: above its saved frame pointer is the word that
 * the first body's last call left, an address in that first body. So a chain of frame pointers has the method
 * twice, and its caller not at all, as what it saved is the caller's frame pointer (dotnet/runtime,
 * JIT_Patchpoint, docs/design/features/OnStackReplacement.md).
 */
#ifndef CLRPERF_SYMBOLIZE_OSR_CALLERS_H
#define CLRPERF_SYMBOLIZE_OSR_CALLERS_H

#include "trace/trace.h"

/*
 * Leaves out the frames that were never there, where stacks are those of frame pointers and locations have
 * their names. Once for a trace: a second time it could take a recursive method's own caller for one.
 */
void osr_callers_leave_out(struct trace *t);

#endif
