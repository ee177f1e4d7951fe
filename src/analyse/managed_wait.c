#include "analyse/managed_wait.h"

#include <string.h>

#include "base/own.h"

enum { FRAMES_LOOKED_AT = 12 }; /* managed ones, from the leaf */

#define FIRST_USE_WAIT "wait for a static constructor"

static const struct {
    const char *frame; /* what its name ends with, before any type arguments and parameters */
    const char *words;
} waits[] = {
    { "Monitor.Enter", "Monitor.Enter" },
    { "Monitor.Enter_Slowpath", "Monitor.Enter" },
    { "Monitor.ReliableEnter", "Monitor.Enter" },
    { "Monitor.TryEnter", "Monitor.TryEnter" },
    { "Monitor.TryEnter_Slowpath", "Monitor.TryEnter" },
    { "Monitor.Wait", "Monitor.Wait" },
    { "Monitor.ObjWait", "Monitor.Wait" },
    { "Condition.Wait", "Monitor.Wait" }, /* from .NET 11 on; Monitor's own can be optimized away */
    { "Lock.TryEnterSlow", "Lock.Enter" },
    { "Lock.Enter", "Lock.Enter" },
    { "Lock.EnterScope", "Lock.Enter" },
    { "Thread.Sleep", "Thread.Sleep" },
    { "Thread.SleepInternal", "Thread.Sleep" },
    { "Thread.Join", "Thread.Join" },
    { "Thread.JoinInternal", "Thread.Join" }, /* Native AOT, as the next two */
    { "SynchronizedMethodHelpers.MonitorEnter", "Monitor.Enter" },
    { "ClassConstructorRunner.DeadlockAwareAcquire", FIRST_USE_WAIT },
    { "Task.Wait", "Task.Wait" },
    { "Task.InternalWait", "Task.Wait" },
    { "Task.InternalWaitCore", "Task.Wait" },
    { "Task.SpinThenBlockingWait", "Task.Wait" },
    { "Task.WaitAll", "Task.WaitAll" },
    { "Task.WaitAllCore", "Task.WaitAll" },
    { "Task.WaitAny", "Task.WaitAny" },
    { "TaskAwaiter.HandleNonSuccessAndDebuggerNotification", "Task.Wait" },
    { "TaskAwaiter.GetResult", "Task.Wait" },
    { "ManualResetEventSlim.Wait", "ManualResetEventSlim.Wait" },
    { "CountdownEvent.Wait", "CountdownEvent.Wait" },
    { "Barrier.SignalAndWait", "Barrier.SignalAndWait" },
    { "SemaphoreSlim.Wait", "SemaphoreSlim.Wait" },
    { "SemaphoreSlim.WaitCore", "SemaphoreSlim.Wait" },
    { "WaitHandle.WaitOne", "WaitHandle.WaitOne" },
    { "WaitHandle.WaitOneNoCheck", "WaitHandle.WaitOne" },
    { "WaitHandle.WaitAny", "WaitHandle.WaitAny" },
    { "WaitHandle.WaitAll", "WaitHandle.WaitAll" },
    { "WaitHandle.WaitMultiple", "WaitHandle.WaitAny" },
    { "ReaderWriterLockSlim.TryEnterReadLockCore", "ReaderWriterLockSlim.EnterReadLock" },
    { "ReaderWriterLockSlim.TryEnterWriteLockCore", "ReaderWriterLockSlim.EnterWriteLock" },
    { "ReaderWriterLockSlim.TryEnterUpgradeableReadLockCore",
      "ReaderWriterLockSlim.EnterUpgradeableReadLock" },
    { "ReaderWriterLock.AcquireReaderLock", "ReaderWriterLock.AcquireReaderLock" },
    { "ReaderWriterLock.AcquireWriterLock", "ReaderWriterLock.AcquireWriterLock" },
    { "ReaderWriterLock.UpgradeToWriterLock", "ReaderWriterLock.UpgradeToWriterLock" },
    { "SpinWait.SpinUntil", "SpinWait.SpinUntil" },
    { "BlockingCollection.TryTakeWithNoTimeValidation", "BlockingCollection.Take" },
    { "BlockingCollection.TryAddWithNoTimeValidation", "BlockingCollection.Add" },
    { "Console.ReadLine", "Console.ReadLine" },
    { "Console.ReadKey", "Console.ReadKey" },
    { "Process.WaitForExit", "Process.WaitForExit" },
    { "ProcessWaitState.WaitForExit", "Process.WaitForExit" },
    { "GC.WaitForPendingFinalizers", "GC.WaitForPendingFinalizers" },
    /* the runtime's side of them from .NET 10 on: compiled code calls it itself where the method is inlined
     */
    { "GCInterface_WaitForPendingFinalizers", "GC.WaitForPendingFinalizers" },
    { "Monitor_Enter_Slowpath", "Monitor.Enter" },
    { "Monitor_TryEnter_Slowpath", "Monitor.TryEnter" },
    { "Monitor_Wait", "Monitor.Wait" },
    { "ThreadNative_Join", "Thread.Join" },
    { "ThreadNative_Sleep", "Thread.Sleep" },
    { "WaitHandle_WaitOneCore", "WaitHandle.WaitOne" },
    { "WaitHandle_WaitMultipleIgnoringSyncContext", "WaitHandle.WaitAny" },
};

/*
 * What a type's first use calls from .NET 10 on; it runs the type's static constructor, or waits for the
 * thread that does. Nothing managed is below it while it waits.
 */
static const char first_use[] = "InitClassHelper";

/* Where the type arguments begin that end at `end`: at "<" of "List<KeyValuePair<int,T>>"; 0: nowhere. */
static size_t arguments_begin(const char *shown, size_t end)
{
    unsigned open = 0;
    while (end > 0) {
        char c = shown[--end];
        open += c == '>';
        if (c == '<' && --open == 0)
            return end;
    }
    return 0;
}

/* Whether a name ends with `method`, type arguments and parameters left aside. */
static bool is_method(const char *shown, const char *method)
{
    size_t at = strcspn(shown, "("), left = strlen(method);
    while (left > 0) {
        if (at > 0 && shown[at - 1] == '>')
            at = arguments_begin(shown, at);
        if (at == 0 || shown[--at] != method[--left])
            return false;
    }
    return at == 0 || shown[at - 1] == '.' || shown[at - 1] == '+';
}

/* Native code of the runtime that does what a method is there for. The method, which called it, is often
 * optimized away. */
static bool is_native_method(const struct shown_frame *frame)
{
    uint8_t resolver = frame->frame->resolver;
    return resolver == RESOLVER_FCALL || resolver == RESOLVER_QCALL;
}

static bool is_framework(const struct shown_frame *frame)
{
    const char *module = frame->frame->module;
    return strncmp(module, "System.", 7) == 0 || is_native_method(frame);
}

/* The next frame from *at on that is looked at: the framework's, below the program's own code; or NULL. */
static const struct shown_frame *next_frame(const struct shown_stack *stack, size_t *at, unsigned *looked)
{
    for (; *at < stack->count && *looked < FRAMES_LOOKED_AT; ++*at) {
        const struct shown_frame *frame = &stack->frames[*at];
        if (!shown_frame_is_managed(frame) && !is_native_method(frame))
            continue;
        if (!is_framework(frame))
            return NULL;
        ++*at;
        ++*looked;
        return frame;
    }
    return NULL;
}

const char *managed_wait_name(const struct shown_stack *stack)
{
    const char *found = NULL;
    size_t at = 0;
    unsigned looked = 0;
    for (const struct shown_frame *frame; (frame = next_frame(stack, &at, &looked));) {
        if (looked == 1 && is_native_method(frame) && is_method(frame->frame->name, first_use))
            found = FIRST_USE_WAIT;
        for (size_t k = 0; k < ARRAY_LEN(waits); k++)
            if (is_method(frame->frame->name, waits[k].frame))
                found = waits[k].words;
    }
    return found;
}

bool managed_wait_is_by(const struct shown_stack *stack, const char *method)
{
    size_t at = 0;
    unsigned looked = 0;
    for (const struct shown_frame *frame; (frame = next_frame(stack, &at, &looked));)
        if (is_method(frame->frame->name, method))
            return true;
    return false;
}
