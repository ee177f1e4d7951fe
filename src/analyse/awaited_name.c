#include "analyse/awaited_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/own.h"

#define TASKS "System.Threading.Tasks."

/* Types of the framework, without type arguments; dotnet/runtime src/libraries. */
static const struct {
    const char *type, *words;
} awaited[] = {
    { TASKS "Task+DelayPromise", "Task.Delay" },
    { TASKS "Task+DelayPromiseWithCancellation", "Task.Delay" },
    { TASKS "Task+WhenAllPromise", "Task.WhenAll" },
    { TASKS "Task+WhenAllPromise`1", "Task.WhenAll" },
    { TASKS "Task+TwoTaskWhenAnyPromise`1", "Task.WhenAny" },
    { TASKS "TaskFactory+CompleteOnInvokePromise", "Task.WhenAny" },
    { TASKS "TaskFactory+CompleteOnInvokePromise`1", "Task.WhenAny" },
    { TASKS "Task+WhenEachState", "Task.WhenEach" },
    { TASKS "Task+CancellationPromise`1", "Task.WaitAsync" },
    { TASKS "UnwrapPromise`1", "Task.Unwrap" },
    { TASKS "ContinuationTaskFromTask", "Task.ContinueWith" },
    { TASKS "ContinuationTaskFromResultTask`1", "Task.ContinueWith" },
    { TASKS "ContinuationResultTaskFromTask`1", "Task.ContinueWith" },
    { TASKS "ContinuationResultTaskFromResultTask`2", "Task.ContinueWith" },
    { TASKS "ValueTask+ValueTaskSourceAsTask", "ValueTask.AsTask" },
    { TASKS "ValueTask`1+ValueTaskSourceAsTask", "ValueTask.AsTask" },
    { TASKS "Task", "Task" },
    { TASKS "Task`1", "Task" },
    { "System.Threading.SemaphoreSlim+TaskNode", "SemaphoreSlim.WaitAsync" },
    { "System.Threading.PeriodicTimer+State", "PeriodicTimer.WaitForNextTickAsync" },
    { "System.Net.Sockets.Socket+AwaitableSocketAsyncEventArgs", "Socket" },
    { "Microsoft.Win32.SafeHandles.SafeFileHandle+ThreadPoolValueTaskSource", "FileStream" },
    { "System.IO.Pipelines.Pipe+DefaultPipeReader", "PipeReader.ReadAsync" },
    { "System.IO.Pipelines.Pipe+DefaultPipeWriter", "PipeWriter.FlushAsync" },
    { "System.Threading.Channels.AsyncOperation`1", "Channel" },
    { "System.Threading.Channels.AsyncOperation`2", "Channel" },
    { "System.Threading.Channels.VoidAsyncOperationWithData`1", "Channel.WriteAsync" },
    { "System.Threading.Channels.BlockedReadAsyncOperation`1", "Channel.ReadAsync" },
    { "System.Threading.Channels.BlockedWriteAsyncOperation`1", "Channel.WriteAsync" },
    { "System.Threading.Channels.WaitingReadAsyncOperation", "Channel.WaitToReadAsync" },
    { "System.Threading.Channels.WaitingWriteAsyncOperation`1", "Channel.WaitToWriteAsync" },
};

const char *awaited_name(const char *type)
{
    size_t size = strcspn(type, "[");
    for (size_t i = 0; i < ARRAY_LEN(awaited); i++)
        if (strlen(awaited[i].type) == size && strncmp(awaited[i].type, type, size) == 0)
            return awaited[i].words;
    return NULL;
}
