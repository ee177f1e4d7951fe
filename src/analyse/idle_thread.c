#include "analyse/idle_thread.h"

#include <string.h>

#include "base/own.h"

struct idle_rule {
    const char *name; /* the beginning of the thread's */
    const char *kind;
    const char *there;  /* a frame's name has this in it; NULL: no managed frame may be there */
    const char *absent; /* and none has this in it; or NULL */
};

static const struct idle_rule rules[] = {
    { ".NET TP Worker", "thread pool", "LowLevelLifoSemaphore", "ThreadPoolWorkQueue.Dispatch" },
    { ".NET TP Gate", "thread pool", "GateThread", NULL },
    { ".NET TP Wait", "thread pool", "WaitThread", "ThreadPoolWorkQueue.Dispatch" },
    { ".NET TP IO", "thread pool", "IOCompletionPoller", "ThreadPoolWorkQueue.Dispatch" },
    { ".NET ThreadPool", "thread pool", "LowLevelLifoSemaphore", "ThreadPoolWorkQueue.Dispatch" },
    { ".NET Timer", "timer", "TimerThread", "FireNextTimers" },
    { ".NET Sockets", "sockets", "SocketAsyncEngine.EventLoop", NULL },
    { ".NET File Watch", "file watcher", "FileSystemWatcher", NULL },
    { "Kestrel Timer", "timer", "Heartbeat", NULL },
    { ".NET Finalizer", "finalizer", NULL, NULL },
    { ".NET Tiered Com", "tiering", NULL, NULL },
    { ".NET BGC", "GC", NULL, NULL },
    { ".NET Server GC", "GC", NULL, NULL },
    { ".NET SynchManag", "runtime", NULL, NULL },
    { ".NET SigHandler", "signals", NULL, NULL },
    { ".NET EventPipe", "diagnostics", NULL, NULL },
    { ".NET EventPump", "diagnostics", NULL, NULL },
    { ".NET DebugPipe", "diagnostics", NULL, NULL },
    { ".NET Debugger", "diagnostics", NULL, NULL },
};

static bool has_frame(const struct shown_stack *stack, const char *part)
{
    for (size_t i = 0; i < stack->count; i++)
        if (shown_frame_is_managed(&stack->frames[i]) && strstr(stack->frames[i].frame->name, part))
            return true;
    return false;
}

/* In a program compiled ahead the finalizer's thread waits in managed code. */
static bool is_finalizer_loop(const struct shown_frame *frame)
{
    return strcmp(frame->frame->name, "System.Runtime.__Finalizer.ProcessFinalizers") == 0;
}

static bool has_managed(const struct shown_stack *stack)
{
    for (size_t i = 0; i < stack->count; i++)
        if (shown_frame_is_managed(&stack->frames[i]) && !is_finalizer_loop(&stack->frames[i]))
            return true;
    return false;
}

static bool waits_for_finalizers(const struct shown_stack *stack)
{
    for (size_t i = 0; i < stack->count; i++)
        if (is_finalizer_loop(&stack->frames[i]))
            return true;
    return false;
}

/* Somewhere in the runtime's own code, and nowhere in the program's. */
static bool is_of_runtime(const struct shown_stack *stack)
{
    bool in_runtime = false;
    for (size_t i = 0; i < stack->count; i++)
        in_runtime |= stack->frames[i].frame->kind == CODE_RUNTIME;
    return in_runtime;
}

const char *idle_thread_kind(const char *name, const struct shown_stack *stack, bool blocked)
{
    for (size_t i = 0; blocked && i < ARRAY_LEN(rules); i++) {
        const struct idle_rule *rule = &rules[i];
        bool nameless = name[0] == 0 && rule->there; /* a core dump has no names: frames must do */
        if (!nameless && strncmp(name, rule->name, strlen(rule->name)) != 0)
            continue;
        bool fits = rule->there ? has_frame(stack, rule->there) : !has_managed(stack);
        if (nameless && !fits)
            continue;
        return fits && !(rule->absent && has_frame(stack, rule->absent)) ? rule->kind : NULL;
    }
    if (!blocked || name[0] || has_managed(stack))
        return NULL;
    return waits_for_finalizers(stack) ? "finalizer" : is_of_runtime(stack) ? "runtime" : NULL;
}
