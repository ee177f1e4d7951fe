/*
 * aot_thread_name: the name that a program compiled ahead of time (Native AOT) gave a thread, as it lies on
 * its heap.
 *
 * Nothing tells where its objects are, nor what their fields are called. But the method that a thread runs in
 * from its start to its end, AOT_THREAD_START, keeps the System.Threading.Thread in its frame; that and its
 * ThreadWaitInfo refer to each other, as nothing else there does, and its only string is its name
 * (dotnet/runtime, src/coreclr/nativeaot: Thread.NativeAot.cs, MethodTable.h; alike in .NET 8 to 10).
 */
#ifndef CLRPERF_CLR_AOT_THREAD_NAME_H
#define CLRPERF_CLR_AOT_THREAD_NAME_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/memory_pages.h"

#define AOT_THREAD_START "System.Threading.Thread.StartThread"

/*
 * Appends the name in UTF-8. `frame`: the bytes of that method's frame. False when the thread has none, or it
 * is not certain which it is.
 */
bool aot_thread_name_read(struct memory_pages *pages, struct span frame, struct buffer *out);

#endif
