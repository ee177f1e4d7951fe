#include "clr/event_enum.h"

#include <string.h>

#define VALUES(name) static const struct event_enum_value name[]
#define ENUM(name, is_flags, ...)                                                                            \
    {                                                                                                        \
        .id = #name, .values = name, .count = sizeof name / sizeof *(name), .flags = (is_flags), __VA_ARGS__ \
    }

/* dotnet/runtime, src/coreclr/vm/ClrEtwAll.man (valueMap, bitMap), as TraceEvent's enumerations spell them.
 */
VALUES(gc_reason) = {
    { 0, "AllocSmall" },
    { 1, "Induced" },
    { 2, "LowMemory" },
    { 3, "Empty" },
    { 4, "AllocLarge" },
    { 5, "OutOfSpaceSOH" },
    { 6, "OutOfSpaceLOH" },
    { 7, "InducedNotForced" },
    { 8, "Internal" },
    { 9, "InducedLowMemory" },
    { 10, "InducedCompacting" },
    { 11, "LowMemoryHost" },
    { 12, "PMFullGC" },
    { 13, "LowMemoryHostBlocking" },
    /* behind these TraceEvent 4.0 has numbers only */
    { 14, "BgcTuningSOH" },
    { 15, "BgcTuningLOH" },
    { 16, "BgcStepping" },
    { 17, "InducedAggressive" },
};
VALUES(gc_type) = { { 0, "NonConcurrentGC" }, { 1, "BackgroundGC" }, { 2, "ForegroundGC" } };
VALUES(suspend_reason) = {
    { 0, "SuspendOther" },
    { 1, "SuspendForGC" },
    { 2, "SuspendForAppDomainShutdown" },
    { 3, "SuspendForCodePitching" },
    { 4, "SuspendForShutdown" },
    { 5, "SuspendForDebugger" },
    { 6, "SuspendForGCPrep" },
    { 7, "SuspendForDebuggerSweep" },
};
VALUES(allocation_kind) = { { 0, "Small" }, { 1, "Large" }, { 2, "Pinned" } };
VALUES(segment_type) = {
    { 0, "SmallObjectHeap" },
    { 1, "LargeObjectHeap" },
    { 2, "ReadOnlyHeap" },
    { 3, "PinnedObjectHeap" },
};
VALUES(root_kind) = { { 0, "Stack" }, { 1, "Finalizer" }, { 2, "Handle" }, { 3, "Other" } };
VALUES(root_flags) = { { 1, "Pinning" }, { 2, "WeakRef" }, { 4, "Interior" }, { 8, "RefCounted" } };
VALUES(static_flags) = { { 1, "ThreadLocal" } };
VALUES(type_flags) = {
    { 1, "Delegate" }, { 2, "Finalizable" },        { 4, "ExternallyImplementedCOMObject" },
    { 8, "Array" },    { 16, "ModuleBaseAddress" },
};
VALUES(mark_type) = {
    { 0, "MarkStack" },    { 1, "MarkFQ" },       { 2, "MarkHandles" },          { 3, "MarkOlder" },
    { 4, "MarkSizedRef" }, { 5, "MarkOverflow" }, { 6, "MarkDependentHandles" }, { 7, "MarkNewFQ" },
    { 8, "MarkSteal" },    { 9, "MarkBGCRoots" },
};
VALUES(handle_kind) = {
    { 0, "WeakShort" },  { 1, "WeakLong" },  { 2, "Strong" },      { 3, "Pinned" },   { 4, "Variable" },
    { 5, "RefCounted" }, { 6, "Dependent" }, { 7, "AsyncPinned" }, { 8, "SizedRef" },
};
VALUES(global_mechanisms) = {
    { 1, "Concurrent" }, { 2, "Compaction" }, { 4, "Promotion" }, { 8, "Demotion" }, { 16, "CardBundles" },
};
VALUES(pause_mode) = {
    { 0, "Batch" }, { 1, "Interactive" }, { 2, "LowLatency" }, { 3, "SustainedLowLatency" }, { 4, "NoGC" },
};
VALUES(join_time) = { { 0, "Start" }, { 1, "End" } };
VALUES(join_type) = { { 0, "LastJoin" }, { 1, "Join" }, { 2, "Restart" }, { 3, "FirstJoin" } };
VALUES(bucket_kind) = { { 0, "LargestFreeListItems" }, { 1, "PlugsInCondemned" } };
VALUES(gc_settings) = {
    { 1, "GCSettingsConcurrent" },      { 2, "GCSettingsLargePages" },    { 4, "GCSettingsFrozenSegs" },
    { 8, "GCSettingsHardLimitConfig" }, { 16, "GCSettingsNoAffinitize" },
};
/* Above them the tier and, in the highest four, which part of the code it is. */
VALUES(method_flags) = {
    { 0x1, "Dynamic" },
    { 0x2, "Generic" },
    { 0x4, "HasSharedGenericCode" },
    { 0x8, "Jitted" },
    { 0x10, "JitHelper" },
    { 0x20, "ProfilerRejectedPrecompiledCode" },
    { 0x40, "ReadyToRunRejectedPrecompiledCode" },
};
VALUES(tier) = {
    { 0, "Unknown" },
    { 1, "MinOptJitted" },
    { 2, "Optimized" },
    { 3, "QuickJitted" },
    { 4, "OptimizedTier1" },
    { 5, "OptimizedTier1OSR" },
    { 6, "QuickJittedInstrumented" },
    { 7, "OptimizedTier1Instrumented" },
    { 8, "ReadyToRun" },
    { 255, "PreJIT" },
};
VALUES(module_flags) = {
    { 0x1, "DomainNeutral" },
    { 0x2, "Native" },
    { 0x4, "Dynamic" },
    { 0x8, "Manifest" },
    { 0x10, "IbcOptimized" },
    { 0x20, "ReadyToRunModule" },
    { 0x40, "PartialReadyToRunModule" },
};
VALUES(assembly_flags) = {
    { 1, "DomainNeutral" }, { 2, "Dynamic" }, { 4, "Native" }, { 8, "Collectible" }, { 16, "ReadyToRun" },
};
VALUES(domain_flags) = { { 1, "Default" }, { 2, "Executable" }, { 4, "Shared" } };
VALUES(range_type) = {
    { 1, "HotRange" },
    { 2, "WarmRange" },
    { 4, "ColdRange" },
    { 8, "HotColdSortedRange" },
};
VALUES(tail_call) = { { 0, "OptimizedTailCall" }, { 1, "RecursiveLoop" }, { 2, "HelperAssistedTailCall" } };
VALUES(tiering) = { { 1, "QuickJit" }, { 2, "QuickJitForLoops" }, { 4, "TieredPGO" }, { 8, "ReadyToRun" } };
VALUES(sku) = { { 1, "DesktopClr" }, { 2, "CoreClr" }, { 4, "Mono" } };
VALUES(startup_mode) = {
    { 0x1, "ManagedExe" },   { 0x2, "HostedClr" }, { 0x4, "IjwDll" },
    { 0x8, "ComActivated" }, { 0x10, "Other" },
};
VALUES(startup_flags) = {
    { 0x1, "CONCURRENT_GC" },
    { 0x2, "LOADER_OPTIMIZATION_SINGLE_DOMAIN" },
    { 0x4, "LOADER_OPTIMIZATION_MULTI_DOMAIN" },
    { 0x10, "LOADER_SAFEMODE" },
    { 0x100, "LOADER_SETPREFERENCE" },
    { 0x1000, "SERVER_GC" },
    { 0x2000, "HOARD_GC_VM" },
    { 0x4000, "SINGLE_VERSION_HOSTING_INTERFACE" },
    { 0x10000, "LEGACY_IMPERSONATION" },
    { 0x20000, "DISABLE_COMMITTHREADSTACK" },
    { 0x40000, "ALWAYSFLOW_IMPERSONATION" },
    { 0x80000, "TRIM_GC_COMMIT" },
    { 0x100000, "ETW" },
    { 0x200000, "SERVER_BUILD" },
    { 0x400000, "ARM" },
};
VALUES(resolution_stage) = {
    { 0, "FindInLoadContext" },
    { 1, "AssemblyLoadContextLoad" },
    { 2, "ApplicationAssemblies" },
    { 3, "DefaultAssemblyLoadContextFallback" },
    { 4, "ResolveSatelliteAssembly" },
    { 5, "AssemblyLoadContextResolvingEvent" },
    { 6, "AppDomainAssemblyResolveEvent" },
};
VALUES(resolution_result) = {
    { 0, "Success" },
    { 1, "AssemblyNotFound" },
    { 2, "MismatchedAssemblyName" },
    { 3, "IncompatibleVersion" },
    { 4, "Failure" },
    { 5, "Exception" },
};
VALUES(exception_flags) = {
    { 1, "HasInnerException" }, { 2, "Nested" },        { 4, "ReThrown" },
    { 8, "CorruptedState" },    { 16, "CLSCompliant" },
};
VALUES(contention_flags) = { { 0, "Managed" }, { 1, "Native" } };
VALUES(wait_source) = { { 0, "Unknown" }, { 1, "MonitorWait" } };
VALUES(adjustment) = {
    { 0, "Warmup" },       { 1, "Initializing" },   { 2, "RandomMove" },
    { 3, "ClimbingMove" }, { 4, "ChangePoint" },    { 5, "Stabilizing" },
    { 6, "Starvation" },   { 7, "ThreadTimedOut" }, { 8, "CooperativeBlocking" },
};
VALUES(stub_flags) = {
    { 0x1, "ReverseInterop" }, { 0x2, "ComInterop" }, { 0x4, "NGenedStub" },
    { 0x8, "Delegate" },       { 0x10, "VarArg" },    { 0x20, "UnmanagedCallee" },
};
VALUES(sample_type) = { { 0, "Error" }, { 1, "External" }, { 2, "Managed" } };

static const struct event_enum enums[] = {
    ENUM(gc_reason, false),
    ENUM(gc_type, false),
    ENUM(suspend_reason, false),
    ENUM(allocation_kind, false),
    ENUM(segment_type, false),
    ENUM(root_kind, false),
    ENUM(root_flags, true),
    ENUM(static_flags, true),
    ENUM(type_flags, true),
    ENUM(mark_type, false),
    ENUM(handle_kind, false),
    ENUM(global_mechanisms, true),
    ENUM(pause_mode, false),
    ENUM(join_time, false),
    ENUM(join_type, false),
    ENUM(bucket_kind, false),
    ENUM(gc_settings, true),
    ENUM(method_flags, true, .other = 0xffffff80),
    ENUM(tier, false),
    ENUM(module_flags, true),
    ENUM(assembly_flags, true),
    ENUM(domain_flags, true),
    ENUM(range_type, true),
    ENUM(tail_call, false),
    ENUM(tiering, true),
    ENUM(sku, true),
    ENUM(startup_mode, true),
    ENUM(startup_flags, true),
    ENUM(resolution_stage, false),
    ENUM(resolution_result, false),
    ENUM(exception_flags, true),
    ENUM(contention_flags, false),
    ENUM(wait_source, false),
    ENUM(adjustment, false),
    ENUM(stub_flags, true),
    ENUM(sample_type, false),
};

const struct event_enum *event_enum_find(struct span id)
{
    for (size_t i = 0; i < sizeof enums / sizeof *enums; i++)
        if (span_equals(id, span_of(enums[i].id, strlen(enums[i].id))))
            return &enums[i];
    return NULL;
}

const char *event_enum_name(const struct event_enum *e, uint64_t value)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (e->values[i].value == value)
            return e->values[i].name;
    return e->flags && value == 0 ? "None" : NULL;
}

static void append_flags(struct buffer *out, const struct event_enum *e, uint64_t value)
{
    const char *separator = "";
    for (uint32_t i = 0; i < e->count; i++) {
        if ((value & e->values[i].value) == 0)
            continue;
        buffer_string(out, separator);
        buffer_string(out, e->values[i].name);
        separator = ", ";
    }
}

bool event_enum_append(struct buffer *out, const struct event_enum *e, uint64_t value)
{
    value &= ~(uint64_t)e->other;
    const char *name = event_enum_name(e, value);
    if (name) {
        buffer_string(out, name);
        return true;
    }
    uint64_t known = 0;
    for (uint32_t i = 0; e->flags && i < e->count; i++)
        known |= e->values[i].value;
    if (!e->flags || value & ~known)
        return false;
    append_flags(out, e, value);
    return true;
}
