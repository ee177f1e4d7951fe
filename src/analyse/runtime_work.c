#include "analyse/runtime_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

/* What a function is in a stack. */
enum function_role {
    ROLE_NATIVE, /* of neither the runtime nor .NET; libc, the kernel */
    ROLE_MANAGED,
    ROLE_EXCEPTION_CODE, /* managed code of the runtime that dispatches exceptions, 9 and later */
    ROLE_POOL_CODE,      /* of the thread pool, likewise */
    ROLE_STUB,
    ROLE_RUNTIME,
    ROLE_JIT, /* libclrjit */
    ROLE_GC,  /* libclrgc, or by a symbol's name */
    ROLE_CXX_UNWIND
};

struct runtime_work_function {
    uint8_t role;
    uint8_t entry; /* enum runtime_work_class when managed code calls it; WORK_USER: not known by name */
    bool compiles; /* as an entry it led to the JIT in some stack */
};

enum { SEEN_RUNTIME = 1, SEEN_JIT = 2, SEEN_GC = 4, SEEN_CXX_UNWIND = 8 };

/* The end of a stack: what lies below its innermost managed frame. */
struct runtime_work_stack {
    uint32_t entry; /* function: the runtime's first, 0 none */
    uint16_t frames;
    uint8_t managed; /* enum function_role of the innermost managed frame; ROLE_NATIVE: there is none */
    uint8_t seen;
    uint8_t leaf; /* enum function_role */
};

enum thread_role { THREAD_OTHER, THREAD_GC, THREAD_TIERING, THREAD_FINALIZER, THREAD_RUNTIME };

const char *runtime_work_name(enum runtime_work_class work)
{
    static const char *const names[WORK_CLASSES] = {
        "user code", "GC",         "allocating", "JIT",         "tiering",   "type loading", "exceptions",
        "stubs",     "suspension", "locks",      "thread pool", "finalizer", "other runtime"
    };
    return (unsigned)work < WORK_CLASSES ? names[work] : names[WORK_OTHER];
}

const char *runtime_work_key(enum runtime_work_class work)
{
    static const char *const keys[WORK_CLASSES] = { "user",       "gc",           "allocation",  "jit",
                                                    "tiering",    "type_loading", "exceptions",  "stubs",
                                                    "suspension", "locks",        "thread_pool", "finalizer",
                                                    "other" };
    return (unsigned)work < WORK_CLASSES ? keys[work] : keys[WORK_OTHER];
}

struct prefix {
    const char *text;
    uint8_t means;
};

/* Functions of the runtime that managed code calls, by the beginning of their names; the first that fits. */
static const struct prefix entries[] = {
    { "GCInterface_GetNextFinalizable", WORK_FINALIZER },
    { "GCInterface_WaitForPendingFinalizers", WORK_FINALIZER },
    { "GCInterface_AllocateNewArray", WORK_ALLOCATION },
    { "GCInterface_", WORK_GC },
    { "JIT_New", WORK_ALLOCATION },
    { "RhpNew", WORK_ALLOCATION },
    { "JIT_Box", WORK_ALLOCATION },
    { "[allocation helper]", WORK_ALLOCATION },
    { "Array_CreateInstance", WORK_ALLOCATION },
    { "RuntimeTypeHandle_InternalAlloc", WORK_ALLOCATION },
    { "ObjectNative_AllocateUninitializedClone", WORK_ALLOCATION },
    { "IL_Throw", WORK_EXCEPTION },
    { "IL_Rethrow", WORK_EXCEPTION },
    { "ExceptionNative_", WORK_EXCEPTION },
    { "Sfi", WORK_EXCEPTION },
    { "EHEnum", WORK_EXCEPTION },
    { "AppendExceptionStackFrame", WORK_EXCEPTION },
    { "CallCatchFunclet", WORK_EXCEPTION },
    { "CallFilterFunclet", WORK_EXCEPTION },
    { "CallFinallyFunclet", WORK_EXCEPTION },
    { "ResumeAtInterceptionLocation", WORK_EXCEPTION },
    { "JIT_RareDisableHelper", WORK_SUSPENSION },
    { "JIT_PollGC", WORK_SUSPENSION },
    { "ThreadNative_PollGC", WORK_SUSPENSION },
    { "JIT_Patchpoint", WORK_TIERING },
    { "JIT_ClassProfile", WORK_TIERING },
    { "JIT_DelegateProfile", WORK_TIERING },
    { "JIT_VTableProfile", WORK_TIERING },
    { "JIT_CountProfile", WORK_TIERING },
    { "JIT_ValueProfile", WORK_TIERING },
    { "JIT_PInvoke", WORK_STUB },
    { "JIT_ReversePInvoke", WORK_STUB },
    { "ThePreStub", WORK_TYPES },
    { "JIT_InitClass", WORK_TYPES },
    { "JIT_InitInstantiatedClass", WORK_TYPES },
    { "JIT_StrCns", WORK_TYPES },
    { "String_StrCns", WORK_TYPES },
    { "InitClassHelper", WORK_TYPES },
    { "InitHelpers_", WORK_TYPES },
    { "GenericHandle", WORK_TYPES },
    { "JIT_GenericHandle", WORK_TYPES },
    { "JIT_VirtualFunctionPointer", WORK_TYPES },
    { "JIT_GetRuntime", WORK_TYPES },
    { "RuntimeTypeHandle_", WORK_TYPES },
    { "RuntimeMethodHandle_", WORK_TYPES },
    { "RuntimeFieldHandle_", WORK_TYPES },
    { "ModuleHandle_", WORK_TYPES },
    { "RuntimeModule_", WORK_TYPES },
    { "RuntimeAssembly_", WORK_TYPES },
    { "AssemblyNative_", WORK_TYPES },
    { "AssemblyName_", WORK_TYPES },
    { "Signature_", WORK_TYPES },
    { "CustomAttribute_", WORK_TYPES },
    { "ReflectionInvocation_", WORK_TYPES },
    { "MetaDataImport_", WORK_TYPES },
    { "MetadataImport_", WORK_TYPES },
    { "TypeBuilder_", WORK_TYPES },
    { "Delegate_", WORK_TYPES },
    { "LoaderAllocator_", WORK_TYPES },
    { "ThreadPool_", WORK_THREAD_POOL },
    { "Monitor_", WORK_LOCK },
    { "ThreadNative_SpinWait", WORK_LOCK },
    { "ThreadNative_Yield", WORK_LOCK },
    { "WaitHandle_", WORK_LOCK },
    { "JIT_Mon", WORK_LOCK },
    /* those that are the implementation of a method are called as it is */
    { "System.Threading.Monitor.", WORK_LOCK },
    { "System.Threading.Interlocked.", WORK_LOCK },
    { "System.Threading.Thread.SpinWait", WORK_LOCK },
    { "System.Threading.WaitHandle.", WORK_LOCK },
    { "System.Exception.", WORK_EXCEPTION },
    { "System.RuntimeTypeHandle.", WORK_TYPES },
    { "System.RuntimeMethodHandle.", WORK_TYPES },
    { "System.RuntimeFieldHandle.", WORK_TYPES },
    { "System.ModuleHandle.", WORK_TYPES },
    { "System.Signature.", WORK_TYPES },
    { "System.Delegate.", WORK_TYPES },
    { "System.Reflection.", WORK_TYPES },
};

/* Managed code that is the runtime's, by the beginning of its raw name. */
static const struct prefix managed_code[] = {
    { "System.Runtime.EH.", ROLE_EXCEPTION_CODE },
    { "System.Runtime.EH::", ROLE_EXCEPTION_CODE },
    { "System.Runtime.StackFrameIterator", ROLE_EXCEPTION_CODE },
    { "System.Runtime.ExceptionServices.InternalCalls", ROLE_EXCEPTION_CODE },
    { "System.Threading.PortableThreadPool", ROLE_POOL_CODE },
    { "System.Threading.ThreadPoolWorkQueue", ROLE_POOL_CODE },
    { "System.Threading.LowLevelLifoSemaphore", ROLE_POOL_CODE },
    { "System.Threading.LowLevelSpinWaiter", ROLE_POOL_CODE },
};

/* The kernel keeps 15 bytes of a thread's name. */
static const struct prefix thread_names[] = {
    { ".NET Server GC", THREAD_GC },
    { ".NET BGC", THREAD_GC },
    { ".NET GC", THREAD_GC },
    { ".NET Tiered Com", THREAD_TIERING },
    { ".NET Finalizer", THREAD_FINALIZER },
    { ".NET SynchManag", THREAD_RUNTIME },
    { ".NET EventPipe", THREAD_RUNTIME },
    { ".NET SigHandler", THREAD_RUNTIME },
};

static uint8_t prefix_find(const struct prefix *list, size_t count, const char *text, uint8_t otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, list[i].text, strlen(list[i].text)) == 0)
            return list[i].means;
    return otherwise;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* With symbols the collector is known by its names: one copy for each kind of heap. */
static bool is_collector(const char *name)
{
    return begins(name, "WKS::") || begins(name, "SVR::");
}

/* Imported frames are native, whatever they are. libSystem.Native and its like are the class library's. */
static bool is_runtime(const struct trace_function *f, const char *module)
{
    if (f->kind == CODE_NATIVE)
        return begins(module, "libcoreclr.so") || begins(module, "libclrjit") || begins(module, "libclrgc");
    return f->kind == CODE_RUNTIME && !begins(module, "libSystem.");
}

static enum function_role role_of(const struct trace_function *f, const char *name, const char *module)
{
    if (f->kind == CODE_DYNAMIC && strstr(name, "IL_STUB"))
        return ROLE_STUB;
    if (code_kind_is_managed(f->kind))
        return (enum function_role)prefix_find(managed_code, ARRAY_LEN(managed_code), name, ROLE_MANAGED);
    if (f->kind == CODE_STUB)
        return ROLE_STUB;
    if (begins(module, "libgcc_s.so") || begins(module, "libstdc++.so"))
        return ROLE_CXX_UNWIND;
    if (!is_runtime(f, module))
        return ROLE_NATIVE;
    if (begins(module, "libclrjit"))
        return ROLE_JIT;
    return begins(module, "libclrgc") || is_collector(name) ? ROLE_GC : ROLE_RUNTIME;
}

static void functions_init(struct runtime_work *work)
{
    const struct trace *t = work->trace;
    for (size_t i = 1; i < t->functions.count; i++) {
        const struct trace_function *f = &t->functions.rows[i];
        struct runtime_work_function *out = &work->functions[i];
        const char *name = trace_string(t, f->name);
        out->role = (uint8_t)role_of(f, name, trace_string(t, f->module));
        if (out->role == ROLE_RUNTIME)
            out->entry = prefix_find(entries, ARRAY_LEN(entries), name, WORK_USER);
        work->has_runtime |= out->role == ROLE_RUNTIME || out->role == ROLE_JIT || out->role == ROLE_GC;
    }
}

/* Of code that nobody could name its memory says whether it is managed: of a program that is gone, as a rule.
 */
static uint8_t unnamed_role(const struct trace *t, const struct trace_location *row)
{
    const struct trace_mapping *mapping = &t->mappings.rows[row->mapping];
    enum image_kind kind = (enum image_kind)t->images.rows[mapping->image].kind;
    return row->mapping && (kind == IMAGE_JIT || kind == IMAGE_ANON || kind == IMAGE_PE) ? ROLE_MANAGED
                                                                                         : ROLE_NATIVE;
}

static uint8_t location_role(const struct runtime_work *work, uint32_t location)
{
    const struct trace_location *row = &work->trace->locations.rows[location];
    return row->function ? work->functions[row->function].role : unnamed_role(work->trace, row);
}

static bool role_is_own(uint8_t role)
{
    return role == ROLE_RUNTIME || role == ROLE_JIT || role == ROLE_GC || role == ROLE_STUB ||
           role == ROLE_EXCEPTION_CODE;
}

bool runtime_work_is_own(const struct runtime_work *work, uint32_t location)
{
    return role_is_own(location_role(work, location));
}

/* A stack's end is its caller's, and one frame more; or it begins anew at a managed frame. */
static struct runtime_work_stack stack_end(const struct runtime_work *work, uint32_t stack)
{
    const struct trace_stack *row = &work->trace->stacks.rows[stack];
    uint8_t role = location_role(work, row->location);
    struct runtime_work_stack end = { 0 };
    if (row->parent >= STACK_ROOTS && row->parent < stack)
        end = work->stacks[row->parent];
    if (role == ROLE_MANAGED || role == ROLE_POOL_CODE)
        return (struct runtime_work_stack){ .managed = role, .leaf = role };
    if (end.frames < UINT16_MAX)
        end.frames++;
    end.leaf = role;
    if (role == ROLE_EXCEPTION_CODE)
        end.managed = role;
    bool runtime = role == ROLE_RUNTIME || role == ROLE_JIT || role == ROLE_GC;
    if (runtime && !end.entry)
        end.entry = work->trace->locations.rows[row->location].function;
    end.seen |= (uint8_t)((runtime ? SEEN_RUNTIME : 0) | (role == ROLE_JIT ? SEEN_JIT : 0) |
                          (role == ROLE_GC ? SEEN_GC : 0) | (role == ROLE_CXX_UNWIND ? SEEN_CXX_UNWIND : 0));
    return end;
}

void runtime_work_init(struct runtime_work *work, const struct trace *t)
{
    *work = (struct runtime_work){ .trace = t };
    work->functions = mem_alloc(t->functions.count + 1, sizeof *work->functions);
    functions_init(work);
    if (!work->has_runtime)
        return;
    work->stacks = mem_alloc(t->stacks.count + 1, sizeof *work->stacks);
    work->threads = mem_alloc(t->threads.count + 1, sizeof *work->threads);
    for (uint32_t i = 1; i < t->threads.count; i++)
        work->threads[i] = prefix_find(thread_names, ARRAY_LEN(thread_names),
                                       trace_string(t, t->threads.rows[i].name), THREAD_OTHER);
    for (uint32_t i = STACK_ROOTS; i < t->stacks.count; i++) {
        work->stacks[i] = stack_end(work, i);
        if (work->stacks[i].seen & SEEN_JIT && work->stacks[i].managed != ROLE_NATIVE)
            work->functions[work->stacks[i].entry].compiles = true;
    }
}

void runtime_work_done(struct runtime_work *work)
{
    free(work->functions);
    free(work->stacks);
    free(work->threads);
}

/* Where no managed frame is, the thread says what it is for. */
static enum runtime_work_class thread_work(uint8_t thread, const struct runtime_work_stack *end)
{
    switch ((enum thread_role)thread) {
    case THREAD_GC:
        return WORK_GC;
    case THREAD_TIERING:
        return WORK_JIT;
    case THREAD_FINALIZER:
        return WORK_FINALIZER;
    case THREAD_RUNTIME:
        return WORK_OTHER;
    default:
        return end->seen & SEEN_RUNTIME ? WORK_OTHER : WORK_USER;
    }
}

/* In the runtime, called by managed code. */
static enum runtime_work_class entry_work(const struct runtime_work_function *entry,
                                          const struct runtime_work_stack *end)
{
    if (entry->entry != WORK_USER)
        return (enum runtime_work_class)entry->entry;
    if (end->seen & SEEN_CXX_UNWIND)
        return WORK_EXCEPTION;
    return entry->compiles ? WORK_TYPES : WORK_OTHER;
}

static enum runtime_work_class end_work(const struct runtime_work *work, const struct runtime_work_stack *end,
                                        uint8_t thread, enum gc_time when)
{
    if (when == GC_TIME_OWN && (end->seen & SEEN_RUNTIME || end->managed == ROLE_NATIVE))
        return WORK_GC;
    if (end->seen & SEEN_JIT)
        return WORK_JIT;
    if (end->seen & SEEN_GC || thread == THREAD_GC)
        return WORK_GC;
    if (end->managed == ROLE_EXCEPTION_CODE)
        return WORK_EXCEPTION;
    if (end->managed == ROLE_NATIVE)
        return thread_work(thread, end);
    enum runtime_work_class called = WORK_USER;
    if (end->seen & SEEN_RUNTIME)
        called = entry_work(&work->functions[end->entry], end);
    else if (end->leaf == ROLE_STUB)
        called = WORK_STUB;
    if (called == WORK_ALLOCATION && when != GC_TIME_NONE)
        called = WORK_GC;
    if (end->managed == ROLE_POOL_CODE &&
        (called == WORK_USER || called == WORK_LOCK || called == WORK_OTHER))
        called = WORK_THREAD_POOL;
    bool vague = called == WORK_USER || called == WORK_OTHER || called == WORK_STUB;
    return thread == THREAD_FINALIZER && vague ? WORK_FINALIZER : called;
}

enum runtime_work_class runtime_work_of(const struct runtime_work *work, uint32_t stack, uint32_t thread,
                                        enum gc_time when, uint32_t *out_frames)
{
    static const struct runtime_work_stack none = { 0 };
    bool known =
        work->has_runtime && stack < work->trace->stacks.count && thread < work->trace->threads.count;
    const struct runtime_work_stack *end = known ? &work->stacks[stack] : &none;
    uint8_t role = known ? work->threads[thread] : (uint8_t)THREAD_OTHER;
    enum runtime_work_class found = end_work(work, end, role, when);
    if (out_frames)
        *out_frames = found == WORK_USER ? 0 : end->frames;
    return found;
}
