#include "clr/event_catalogue.h"

#include <string.h>

#include "clr/provider_names.h"

/* Layouts that several events share. */
#define CLR_ONLY "1:clr"
#define METHOD                                                                                               \
    "x8 MethodID, x8 ModuleID, x8 MethodStartAddress, u4 MethodSize, x4 MethodToken, "                       \
    "x4 MethodFlags=method_flags, 1:clr, 2:u8 ReJITID, tier OptimizationTier[MethodFlags]=tier"
#define METHOD_VERBOSE                                                                                       \
    "x8 MethodID, x8 ModuleID, x8 MethodStartAddress, u4 MethodSize, x4 MethodToken, "                       \
    "x4 MethodFlags=method_flags, s MethodNamespace, s MethodName, s MethodSignature, 1:clr, 2:u8 ReJITID, " \
    "tier OptimizationTier[MethodFlags]=tier"
#define IL_MAP                                                                                               \
    "x8 MethodID, u8 ReJITID, u1 MethodExtent, u2 CountOfMapEntries, i4 ILOffsets[CountOfMapEntries], "      \
    "u4 NativeOffsets[CountOfMapEntries], clr, 1:u8 ILVersionID"
#define DOMAIN_MODULE                                                                                        \
    "x8 ModuleID, x8 AssemblyID, x8 AppDomainID, x4 ModuleFlags=module_flags, pad4, s ModuleILPath, "        \
    "s ModuleNativePath, 1:clr"
#define MODULE                                                                                               \
    "x8 ModuleID, x8 AssemblyID, x4 ModuleFlags=module_flags, pad4, s ModuleILPath, s ModuleNativePath, "    \
    "1:clr, 2:g ManagedPdbSignature, 2:u4 ManagedPdbAge, 2:s ManagedPdbBuildPath, 2:g NativePdbSignature, "  \
    "2:u4 NativePdbAge, 2:s NativePdbBuildPath, 3:s NativeBuildID"
#define ASSEMBLY                                                                                             \
    "x8 AssemblyID, x8 AppDomainID, 1:x8 BindingID, 1:x4 AssemblyFlags=assembly_flags, "                     \
    "s FullyQualifiedAssemblyName, 1:clr"
#define DOMAIN       "x8 AppDomainID, x4 AppDomainFlags=domain_flags, s AppDomainName, 1:u4 AppDomainIndex, 1:clr"
#define MODULE_RANGE "clr, x8 ModuleID, x4 RangeBegin, u4 RangeSize, u1 RangeType=range_type"
#define THREAD_CREATED                                                                                       \
    "x8 ManagedThreadID, x8 AppDomainID, x4 Flags, u4 ManagedThreadIndex, u4 OSThreadID, clr"
#define THREAD_TERMINATED "x8 ManagedThreadID, x8 AppDomainID, clr"
#define RUNTIME                                                                                              \
    "clr, u2 Sku=sku, u2 BclMajorVersion, u2 BclMinorVersion, u2 BclBuildNumber, u2 BclQfeNumber, "          \
    "u2 VMMajorVersion, u2 VMMinorVersion, u2 VMBuildNumber, u2 VMQfeNumber, x4 "                            \
    "StartupFlags=startup_flags, "                                                                           \
    "u1 StartupMode=startup_mode, s CommandLine, g ComObjectGuid, s RuntimeDllPath"
#define CODE_SYMBOLS                                                                                         \
    "x8 ModuleId, u2 TotalChunks, u2 ChunkNumber, u4 ChunkLength, bytes Chunk[ChunkLength], clr"
#define TIERING_SETTINGS "clr, x4 Flags=tiering"
#define CHECKPOINT       "clr, s Name, i8 Timestamp"
#define STACK            "clr, u1 Reserved1, u1 Reserved2, u4 FrameCount, p Stack[FrameCount]"
#define MARK             "u4 HeapNum, clr"
#define JOIN             "u4 Heap, u4 JoinTime=join_time, u4 JoinType=join_type, 1:clr, 2:u4 ID"
#define WORKERS          "u4 ActiveWorkerThreadCount, u4 RetiredWorkerThreadCount, clr"
#define IO_THREADS       "u4 IOThreadCount, u4 RetiredIOThreads, 1:clr"
#define WORK             "p WorkID, clr"
#define OVERLAPPED       "p NativeOverlapped, p Overlapped, clr"
#define HANDLING         "x8 EntryEIP, x8 MethodID, s MethodName, clr"
#define SAMPLED_OBJECTS  "p Address, p TypeID, u4 ObjectCountForTypeSample, u8 TotalSizeForTypeSample, clr"
#define SET_HANDLE       "p HandleID, p ObjectID, u4 Kind=handle_kind, u4 Generation, x8 AppDomainID, clr"
#define DESTROY_HANDLE   "p HandleID, clr"
#define PINNED_OBJECT    "p HandleID, p ObjectID, u8 ObjectSize, s TypeName, clr"
#define PLUG             "p PlugStart, p PlugEnd, n GapBeforeSize, clr"
#define COMPILED                                                                                             \
    "s MethodBeingCompiledNamespace, s MethodBeingCompiledName, s MethodBeingCompiledNameSignature, "
#define INLINING                                                                                             \
    COMPILED                                                                                                 \
    "s InlinerNamespace, s InlinerName, s InlinerNameSignature, s InlineeNamespace, s InlineeName, "         \
    "s InlineeNameSignature, "
#define TAIL_CALL                                                                                            \
    COMPILED "s CallerNamespace, s CallerName, s CallerNameSignature, s CalleeNamespace, s CalleeName, "     \
             "s CalleeNameSignature, "
#define ASSEMBLY_LOAD                                                                                        \
    "clr, s AssemblyName, s AssemblyPath, s RequestingAssembly, s AssemblyLoadContext, "                     \
    "s RequestingAssemblyLoadContext"
#define GENERATION                                                                                           \
    "{n SizeBefore, n FreeListSpaceBefore, n FreeObjSpaceBefore, n SizeAfter, n FreeListSpaceAfter, "        \
    "n FreeObjSpaceAfter, n In, n PinnedSurv, n NonePinnedSurv, n NewAllocation}"
#define PER_HEAP                                                                                             \
    "clr, n FreeListAllocated, n FreeListRejected, n EndOfSegAllocated, n CondemnedAllocated, "              \
    "n PinnedAllocated, n PinnedAllocatedAdvance, u4 RunningFreeListEfficiency, x4 CondemnReasons0, "        \
    "x4 CondemnReasons1, x4 CompactMechanisms, x4 ExpandMechanisms, u4 HeapIndex, n ExtraGen0Commit, "       \
    "u4 Count, GenData[Count]" GENERATION
#define GLOBAL_HEAP                                                                                          \
    "u8 FinalYoungestDesired, i4 NumHeaps, u4 CondemnedGeneration, u4 Gen0ReductionCount, "                  \
    "u4 Reason=gc_reason, x4 GlobalMechanisms=global_mechanisms, 1:clr, 2:u4 PauseMode=pause_mode, "         \
    "2:u4 MemoryPressure, 3:x4 CondemnReasons0, 3:x4 CondemnReasons1, 4:u4 Count, 4:u4 Times[Count]"

/* A string without its pointer is written as nothing at all by runtime 3.x: what is behind it shifts. */
static const struct catalogue_event runtime_events[] = {
    { 1, "GC/Start",
      "u4 Count, 1:u4 Depth, u4 Reason=gc_reason, 1:u4 Type=gc_type, 1:clr, 2:u8 ClientSequenceNumber" },
    { 2, "GC/Stop", "u4 Count, <1:u2 Depth, 1:u4 Depth, 1:clr" },
    { 3, "GC/RestartEEStop", CLR_ONLY },
    { 4, "GC/HeapStats",
      "u8 GenerationSize0, u8 TotalPromotedSize0, u8 GenerationSize1, u8 TotalPromotedSize1, "
      "u8 GenerationSize2, u8 TotalPromotedSize2, u8 GenerationSize3, u8 TotalPromotedSize3, "
      "u8 FinalizationPromotedSize, u8 FinalizationPromotedCount, u4 PinnedObjectCount, u4 SinkBlockCount, "
      "u4 GCHandleCount, 1:clr, 2:u8 GenerationSize4, 2:u8 TotalPromotedSize4" },
    { 5, "GC/CreateSegment", "x8 Address, u8 Size, u4 Type=segment_type, 1:clr" },
    { 6, "GC/FreeSegment", "x8 Address, 1:clr" },
    { 7, "GC/RestartEEStart", CLR_ONLY },
    { 8, "GC/SuspendEEStop", CLR_ONLY },
    { 9, "GC/SuspendEEStart", "<1:u2 Reason=suspend_reason, 1:u4 Reason=suspend_reason, 1:u4 Count, 1:clr" },
    { 10, "GC/AllocationTick",
      "u4 AllocationAmount, u4 AllocationKind=allocation_kind, 1:clr, 2:u8 AllocationAmount64, 2:p TypeID, "
      "2:s TypeName, 2:u4 HeapIndex, 3:p Address, 4:u8 ObjectSize" },
    { 11, "GC/CreateConcurrentThread", CLR_ONLY },
    { 12, "GC/TerminateConcurrentThread", CLR_ONLY },
    { 13, "GC/FinalizersStop", "u4 Count, 1:clr" },
    { 14, "GC/FinalizersStart", CLR_ONLY },
    { 15, "Type/BulkType",
      "u4 Count, clr, Values[Count]{x8 TypeID, x8 ModuleID, x4 TypeNameID, x4 Flags=type_flags, "
      "u1 CorElementType, s TypeName, u4 TypeParameterCount, x8 TypeParameters[TypeParameterCount]}" },
    { 16, "GC/BulkRootEdge",
      "u4 Index, u4 Count, clr, Values[Count]{p RootedNodeAddress, u1 GCRootKind=root_kind, "
      "x4 GCRootFlag=root_flags, p GCRootID}" },
    { 17, "GC/BulkRootConditionalWeakTableElementEdge",
      "u4 Index, u4 Count, clr, Values[Count]{p GCKeyNodeID, p GCValueNodeID, p GCRootID}" },
    { 18, "GC/BulkNode",
      "u4 Index, u4 Count, clr, Values[Count]{p Address, u8 Size, x8 TypeID, u8 EdgeCount}" },
    { 19, "GC/BulkEdge", "u4 Index, u4 Count, clr, Values[Count]{p Target, u4 ReferencingField}" },
    { 20, "GC/SampledObjectAllocation", SAMPLED_OBJECTS },
    { 21, "GC/BulkSurvivingObjectRanges",
      "u4 Index, u4 Count, clr, Values[Count]{p RangeBase, u8 RangeLength}" },
    { 22, "GC/BulkMovedObjectRanges",
      "u4 Index, u4 Count, clr, Values[Count]{p OldRangeBase, p NewRangeBase, u8 RangeLength}" },
    { 23, "GC/GenerationRange",
      "u1 Generation, p RangeStart, u8 RangeUsedLength, u8 RangeReservedLength, clr" },
    { 25, "GC/MarkStackRoots", MARK },
    { 26, "GC/MarkFinalizeQueueRoots", MARK },
    { 27, "GC/MarkHandles", MARK },
    { 28, "GC/MarkCards", MARK },
    { 29, "GC/FinalizeObject", "p TypeID, p ObjectID, clr" },
    { 30, "GC/SetGCHandle", SET_HANDLE },
    { 31, "GC/DestoryGCHandle", DESTROY_HANDLE }, /* as TraceEvent spells it */
    { 32, "GC/SampledObjectAllocation", SAMPLED_OBJECTS },
    { 33, "GC/PinObjectAtGCTime", PINNED_OBJECT },
    { 34, "GC/PinPlugAtGCTime", PLUG },
    { 35, "GC/Triggered", "u4 Reason=gc_reason, clr" },
    { 36, "GC/BulkRootCCW",
      "u4 Count, clr, Values[Count]{x8 GCRootID, x8 ObjectID, x8 TypeID, x8 IUnknown, u4 RefCount, "
      "u4 PeggedRefCount, x4 Flags}" },
    { 37, "GC/BulkRCW",
      "u4 Count, clr, Values[Count]{x8 ObjectID, x8 TypeID, x8 IUnknown, x8 VTable, u4 RefCount, x4 Flags}" },
    { 38, "GC/BulkRootStaticVar",
      "u4 Count, x8 AppDomainID, clr, Values[Count]{x8 GCRootID, x8 ObjectID, x8 TypeID, "
      "x4 Flags=static_flags, s FieldName}" },
    { 39, "GC/DynamicTraceEvent",
      "s Name, u4 DataSize, bytes Data[DataSize]?CommittedUsage{u2 Version, u8 TotalCommittedInUse, "
      "u8 TotalCommittedInGlobalDecommit, u8 TotalCommittedInFree, u8 TotalCommittedInGlobalFree, "
      "u8 TotalBookkeepingCommitted}, clr" },
    { 44, "IOThreadCreation/Start", IO_THREADS },
    { 45, "IOThreadCreation/Stop", IO_THREADS },
    { 46, "IOThreadRetirement/Start", IO_THREADS },
    { 47, "IOThreadRetirement/Stop", IO_THREADS },
    { 50, "ThreadPoolWorkerThread/Start", WORKERS },
    { 51, "ThreadPoolWorkerThread/Stop", WORKERS },
    { 52, "ThreadPoolWorkerThreadRetirement/Start", WORKERS },
    { 53, "ThreadPoolWorkerThreadRetirement/Stop", WORKERS },
    { 54, "ThreadPoolWorkerThreadAdjustment/Sample", "f8 Throughput, clr" },
    { 55, "ThreadPoolWorkerThreadAdjustment/Adjustment",
      "f8 AverageThroughput, u4 NewWorkerThreadCount, u4 Reason=adjustment, clr" },
    { 56, "ThreadPoolWorkerThreadAdjustment/Stats",
      "f8 Duration, f8 Throughput, f8 ThreadWave, f8 ThroughputWave, f8 ThroughputErrorEstimate, "
      "f8 AverageThroughputErrorEstimate, f8 ThroughputRatio, f8 Confidence, f8 NewControlSetting, "
      "u2 NewThreadWaveMagnitude, clr" },
    { 57, "ThreadPoolWorkerThread/Wait", WORKERS },
    { 58, "YieldProcessorMeasurement", "clr, f8 NsPerYield, f8 EstablishedNsPerYield" },
    { 59, "ThreadPoolMinMaxThreads",
      "u2 MinWorkerThreads, u2 MaxWorkerThreads, u2 MinIOCompletionThreads, u2 MaxIOCompletionThreads, clr" },
    { 60, "ThreadPoolWorkingThreadCount/Start", "u4 Count, clr" },
    { 61, "ThreadPool/Enqueue", WORK },
    { 62, "ThreadPool/Dequeue", WORK },
    { 63, "ThreadPool/IOEnqueue", "p NativeOverlapped, p Overlapped, b4 MultiDequeues, clr" },
    { 64, "ThreadPool/IODequeue", OVERLAPPED },
    { 65, "ThreadPool/IOPack", OVERLAPPED },
    { 70, "Thread/Creating", "p ID, clr" },
    { 71, "Thread/Running", "p ID, clr" },
    { 72, "Method/MethodDetails",
      "x8 MethodID, x8 TypeID, x4 MethodToken, u4 TypeParameterCount, x8 LoaderModuleID, "
      "x8 TypeParameters[TypeParameterCount]" },
    { 73, "TypeLoad/Start", "u4 TypeLoadStartID, clr" },
    { 74, "TypeLoad/Stop", "u4 TypeLoadStartID, clr, u2 LoadLevel, x8 TypeID, s TypeName" },
    { 80, "Exception/Start",
      "1:s ExceptionType, 1:s ExceptionMessage, 1:p ExceptionEIP, 1:x4 ExceptionHRESULT, "
      "1:u2 ExceptionFlags=exception_flags, 1:clr" },
    { 81, "Contention/Start",
      "1:u1 ContentionFlags=contention_flags, 1:clr, 2:p LockID, 2:p AssociatedObjectID, 2:u8 "
      "LockOwnerThreadID" },
    { 82, "ClrStack/Walk", STACK },
    { 83, "AppDomainResourceManagement/MemAllocated", "x8 AppDomainID, u8 Allocated, clr" },
    { 84, "AppDomainResourceManagement/MemSurvived", "x8 AppDomainID, u8 Survived, u8 ProcessSurvived, clr" },
    { 85, "AppDomainResourceManagement/ThreadCreated", THREAD_CREATED },
    { 86, "AppDomainResourceManagement/ThreadTerminated", THREAD_TERMINATED },
    { 87, "AppDomainResourceManagement/DomainEnter", THREAD_TERMINATED },
    { 88, "ILStub/StubGenerated",
      "clr, x8 ModuleID, x8 StubMethodID, x4 StubFlags=stub_flags, x4 ManagedInteropMethodToken, "
      "s ManagedInteropMethodNamespace, s ManagedInteropMethodName, s ManagedInteropMethodSignature, "
      "s NativeMethodSignature, s StubMethodSignature, s StubMethodILCode" },
    { 89, "ILStub/StubCacheHit",
      "clr, x8 ModuleID, x8 StubMethodID, x4 ManagedInteropMethodToken, s ManagedInteropMethodNamespace, "
      "s ManagedInteropMethodName, s ManagedInteropMethodSignature" },
    { 90, "Contention/LockCreated", "p LockID, p AssociatedObjectID, clr" },
    { 91, "Contention/Stop", "u1 ContentionFlags=contention_flags, clr, 1:f8 DurationNs" },
    { 135, "Method/DCStartCompleteV2", "" },
    { 136, "Method/DCStopCompleteV2", "" },
    { 137, "Method/DCStartV2", METHOD },
    { 138, "Method/DCStopV2", METHOD },
    { 139, "Method/DCStartVerboseV2", METHOD_VERBOSE },
    { 140, "Method/DCStopVerboseV2", METHOD_VERBOSE },
    { 141, "Method/Load", METHOD },
    { 142, "Method/Unload", METHOD },
    { 143, "Method/LoadVerbose", METHOD_VERBOSE },
    { 144, "Method/UnloadVerbose", METHOD_VERBOSE },
    { 145, "Method/JittingStarted",
      "x8 MethodID, x8 ModuleID, x4 MethodToken, u4 MethodILSize, s MethodNamespace, s MethodName, "
      "s MethodSignature, 1:clr" },
    { 146, "Method/MemoryAllocatedForJitCode",
      "x8 MethodID, x8 ModuleID, u8 JitHotCodeRequestSize, u8 JitRODataRequestSize, u8 "
      "AllocatedSizeForJitCode, "
      "x4 JitAllocFlag, clr" },
    { 149, "Loader/ModuleDCStartV2", MODULE },
    { 150, "Loader/ModuleDCStopV2", MODULE },
    { 151, "Loader/DomainModuleLoad", DOMAIN_MODULE },
    { 152, "Loader/ModuleLoad", MODULE },
    { 153, "Loader/ModuleUnload", MODULE },
    { 154, "Loader/AssemblyLoad", ASSEMBLY },
    { 155, "Loader/AssemblyUnload", ASSEMBLY },
    { 156, "Loader/AppDomainLoad", DOMAIN },
    { 157, "Loader/AppDomainUnload", DOMAIN },
    { 158, "ClrPerfTrack/ModuleRangeLoad", MODULE_RANGE },
    { 159, "Method/R2RGetEntryPoint",
      "x8 MethodID, s MethodNamespace, s MethodName, s MethodSignature, x8 EntryPoint, clr" },
    { 160, "Method/R2RGetEntryPointStart", "x8 MethodID, clr" },
    { 181, "StrongNameVerification/Start",
      "x4 VerificationFlags, x4 ErrorCode, s FullyQualifiedAssemblyName, 1:clr" },
    { 182, "StrongNameVerification/Stop",
      "x4 VerificationFlags, x4 ErrorCode, s FullyQualifiedAssemblyName, 1:clr" },
    { 183, "AuthenticodeVerification/Start", "x4 VerificationFlags, x4 ErrorCode, s ModulePath, 1:clr" },
    { 184, "AuthenticodeVerification/Stop", "x4 VerificationFlags, x4 ErrorCode, s ModulePath, 1:clr" },
    { 185, "Method/InliningSucceeded", INLINING "clr" },
    { 186, "Method/InliningFailedAnsi", INLINING "b4 FailAlways, a FailReason, clr" },
    { 187, "Runtime/Start", RUNTIME },
    { 188, "Method/TailCallSucceeded", TAIL_CALL "b4 TailPrefix, u4 TailCallType=tail_call, clr" },
    { 189, "Method/TailCallFailedAnsi", TAIL_CALL "b4 TailPrefix, a FailReason, clr" },
    { 190, "Method/ILToNativeMap", IL_MAP },
    { 191, "Method/TailCallFailed", TAIL_CALL "b4 TailPrefix, s FailReason, clr" },
    { 192, "Method/InliningFailed", INLINING "b4 FailAlways, s FailReason, clr" },
    { 200, "GC/IncreaseMemoryPressure", "u8 BytesAllocated, clr" },
    { 201, "GC/DecreaseMemoryPressure", "u8 BytesFreed, clr" },
    { 202, "GC/MarkWithType", "u4 HeapNum, clr, u4 Type=mark_type, u8 Promoted" },
    { 203, "GC/Join", JOIN },
    { 204, "GC/PerHeapHistory", PER_HEAP },
    { 205, "GC/GlobalHeapHistory", GLOBAL_HEAP },
    { 206, "GC/GenAwareBegin", "u4 Count, clr" },
    { 207, "GC/GenAwareEnd", "u4 Count, clr" },
    { 208, "GC/LOHCompact",
      "clr, u2 Count, Values[Count]{u4 TimePlan, u4 TimeCompact, u4 TimeRelocate, pad4, n TotalRefs, n "
      "ZeroRefs}" },
    { 209, "GC/FitBucketInfo",
      "clr, u2 BucketKind=bucket_kind, u8 TotalSize, u2 Count, Values[Count]{u2 Index, pad2, u4 Count, u8 "
      "Size}" },
    { 250, "ExceptionCatch/Start", HANDLING },
    { 251, "ExceptionCatch/Stop", "" },
    { 252, "ExceptionFinally/Start", HANDLING },
    { 253, "ExceptionFinally/Stop", "" },
    { 254, "ExceptionFilter/Start", HANDLING },
    { 255, "ExceptionFilter/Stop", "" },
    { 256, "Exception/Stop", "" },
    { 260, "CodeSymbols/Start", CODE_SYMBOLS },
    { 270, "EventSourceEvent", "i4 EventID, s Name, s EventSourceName, s Payload" },
    { 280, "TieredCompilation/Settings", TIERING_SETTINGS },
    { 281, "TieredCompilation/Pause", "clr" },
    { 282, "TieredCompilation/Resume", "clr, u4 NewMethodCount" },
    { 283, "TieredCompilation/BackgroundJitStart", "clr, u4 PendingMethodCount" },
    { 284, "TieredCompilation/BackgroundJitStop", "clr, u4 PendingMethodCount, u4 JittedMethodCount" },
    { 290, "AssemblyLoader/Start", ASSEMBLY_LOAD },
    { 291, "AssemblyLoader/Stop",
      ASSEMBLY_LOAD ", b4 Success, s ResultAssemblyName, s ResultAssemblyPath, b4 Cached" },
    { 292, "AssemblyLoader/ResolutionAttempted",
      "clr, s AssemblyName, u2 Stage=resolution_stage, s AssemblyLoadContext, u2 Result=resolution_result, "
      "s ResultAssemblyName, s ResultAssemblyPath, s ErrorMessage" },
    { 293, "AssemblyLoader/AssemblyLoadContextResolvingHandlerInvoked",
      "clr, s AssemblyName, s HandlerName, s AssemblyLoadContext, s ResultAssemblyName, s "
      "ResultAssemblyPath" },
    { 294, "AssemblyLoader/AppDomainAssemblyResolveHandlerInvoked",
      "clr, s AssemblyName, s HandlerName, s ResultAssemblyName, s ResultAssemblyPath" },
    { 295, "AssemblyLoader/AssemblyLoadFromResolveHandlerInvoked",
      "clr, s AssemblyName, b4 IsTrackedLoad, s RequestingAssemblyPath, s ComputedRequestedAssemblyPath" },
    { 296, "AssemblyLoader/KnownPathProbed", "clr, s FilePath, u2 Source, i4 Result" },
    { 297, "JitInstrumentationData/InstrumentationData",
      "clr, x4 MethodFlags, u4 DataSize, x8 MethodID, bytes Data[DataSize]" },
    { 298, "JitInstrumentationDataVerbose/InstrumentationData",
      "clr, x4 MethodFlags, u4 DataSize, x8 MethodID, x8 ModuleID, x4 MethodToken, s MethodNamespace, "
      "s MethodName, s MethodSignature, bytes Data[DataSize]" },
    { 299, "Profiler/ProfilerMessage", "clr, s Message" },
    { 300, "ExecutionCheckpoint/ExecutionCheckpoint", CHECKPOINT },
    { 301, "WaitHandleWait/Start", "u1 WaitSource=wait_source, p AssociatedObjectID, clr" },
    { 302, "WaitHandleWait/Stop", "clr" },
    { 303, "AllocationSampling",
      "u4 AllocationKind=allocation_kind, clr, p TypeID, s TypeName, p Address, u8 ObjectSize, "
      "u8 SampledByteOffset" },
};

static const struct catalogue_event rundown_events[] = {
    { 0, "ClrStack/Walk", STACK },
    { 10, "GC/SettingsRundown",
      "u8 HardLimit, u8 LOHThreshold, u8 PhysicalMemoryConfig, u8 Gen0MinBudgetConfig, u8 "
      "Gen0MaxBudgetConfig, "
      "u4 HighMemPercentConfig, x4 BitSettings=gc_settings, clr" },
    { 141, "Method/DCStart", METHOD },
    { 142, "Method/DCStop", METHOD },
    { 143, "Method/DCStartVerbose", METHOD_VERBOSE },
    { 144, "Method/DCStopVerbose", METHOD_VERBOSE },
    { 145, "Method/DCStartComplete", CLR_ONLY },
    { 146, "Method/DCStopComplete", CLR_ONLY },
    { 147, "Method/DCStartInit", CLR_ONLY },
    { 148, "Method/DCStopInit", CLR_ONLY },
    { 149, "Method/ILToNativeMapDCStart", IL_MAP },
    { 150, "Method/ILToNativeMapDCStop", IL_MAP },
    { 151, "Loader/DomainModuleDCStart", DOMAIN_MODULE },
    { 152, "Loader/DomainModuleDCStop", DOMAIN_MODULE },
    { 153, "Loader/ModuleDCStart", MODULE },
    { 154, "Loader/ModuleDCStop", MODULE },
    { 155, "Loader/AssemblyDCStart", ASSEMBLY },
    { 156, "Loader/AssemblyDCStop", ASSEMBLY },
    { 157, "Loader/AppDomainDCStart", DOMAIN },
    { 158, "Loader/AppDomainDCStop", DOMAIN },
    { 159, "Loader/ThreadDCStop", THREAD_CREATED },
    { 160, "ClrPerfTrack/ModuleRangeDCStart", MODULE_RANGE },
    { 161, "ClrPerfTrack/ModuleRangeDCStop", MODULE_RANGE },
    { 187, "Runtime/Start", RUNTIME },
    { 188, "CodeSymbolsRundown/Start", CODE_SYMBOLS },
    { 280, "TieredCompilationRundown/SettingsDCStart", TIERING_SETTINGS },
    { 300, "ExecutionCheckpointRundown/ExecutionCheckpointDCEnd", CHECKPOINT },
};

/* Of Windows and of runtimes long gone are left out: what no runtime on Linux sends. */
static const struct catalogue_event private_events[] = {
    { 1, "GC/Decision", "b4 DoCompact, 1:clr" },
    { 2, "GC/Settings", "u8 SegmentSize, u8 LargeObjectSegmentSize, b4 ServerGC, 1:clr" },
    { 3, "GC/Optimized", "u8 DesiredAllocation, u8 NewAllocation, u4 GenerationNumber, 1:clr" },
    { 6, "GC/Join", JOIN },
    { 7, "GC/MarkStackRoots", MARK },
    { 8, "GC/MarkFinalizeQueueRoots", MARK },
    { 9, "GC/MarkHandles", MARK },
    { 10, "GC/MarkCards", MARK },
    { 11, "GC/BGCStart", "clr" },
    { 12, "GC/BGC1stNonCondStop", "clr" },
    { 13, "GC/BGC1stConStop", "clr" },
    { 14, "GC/BGC2ndNonConStart", "clr" },
    { 15, "GC/BGC2ndNonConStop", "clr" },
    { 16, "GC/BGC2ndConStart", "clr" },
    { 17, "GC/BGC2ndConStop", "clr" },
    { 18, "GC/BGCPlanStop", "clr" },
    { 19, "GC/BGCSweepStop", "clr" },
    { 20, "GC/BGCDrainMark", "u8 Objects, clr" },
    { 21, "GC/BGCRevisit", "u8 Pages, u8 Objects, u4 IsLarge, clr" },
    { 22, "GC/BGCOverflow", "x8 Min, x8 Max, u8 Objects, u4 IsLarge, clr, 1:u4 GenNumber" },
    { 23, "GC/BGCAllocWaitStart", "u4 Reason, clr" },
    { 24, "GC/BGCAllocWaitStop", "u4 Reason, clr" },
    { 25, "GC/FullNotify", "u4 GenNumber, u4 IsAlloc, clr" },
    { 26, "GC/BGC1stSweepEnd", "u4 GenNumber, clr" },
    { 80, "Startup/EEStartupStart", CLR_ONLY },
    { 81, "Startup/EEStartupStop", CLR_ONLY },
    { 82, "Startup/EEConfigSetupStart", CLR_ONLY },
    { 83, "Startup/EEConfigSetupStop", CLR_ONLY },
    { 84, "Startup/LoadSystemBasesStart", CLR_ONLY },
    { 85, "Startup/LoadSystemBasesStop", CLR_ONLY },
    { 86, "Startup/ExecExeStart", CLR_ONLY },
    { 87, "Startup/ExecExeStop", CLR_ONLY },
    { 88, "Startup/MainStart", CLR_ONLY },
    { 89, "Startup/MainStop", CLR_ONLY },
    { 90, "Startup/ApplyPolicyStart", CLR_ONLY },
    { 91, "Startup/ApplyPolicyStop", CLR_ONLY },
    { 92, "Startup/LdLibShFolderStart", CLR_ONLY },
    { 93, "Startup/LdLibShFolderStop", CLR_ONLY },
    { 94, "Startup/PrestubWorkerStart", CLR_ONLY },
    { 95, "Startup/PrestubWorkerStop", CLR_ONLY },
    { 100, "Startup/ExplicitBindStart", CLR_ONLY },
    { 101, "Startup/ExplicitBindStop", CLR_ONLY },
    { 102, "Startup/ParseXmlStart", CLR_ONLY },
    { 103, "Startup/ParseXmlStop", CLR_ONLY },
    { 104, "Startup/InitDefaultDomainStart", CLR_ONLY },
    { 105, "Startup/InitDefaultDomainStop", CLR_ONLY },
    { 112, "Startup/BindingStart", CLR_ONLY },
    { 113, "Startup/BindingStop", CLR_ONLY },
    { 114, "Startup/LoaderCatchCallStart", CLR_ONLY },
    { 115, "Startup/LoaderCatchCallStop", CLR_ONLY },
    { 151, "ClrStack/Walk", STACK },
    { 191, "FailFast", "s FailFastUserMessage, p FailedEIP, x4 OSExitCode, x4 ClrExitCode, clr" },
    { 192, "GC/FinalizeObject", "p TypeID, p ObjectID, clr, s TypeName" },
    { 194, "GC/SetGCHandle", SET_HANDLE },
    { 195, "GC/DestroyGCHandle", DESTROY_HANDLE },
    { 198, "GC/PinObjectAtGCTime", PINNED_OBJECT },
    { 199, "GC/PinPlugAtGCTime", PLUG },
    { 201, "ClrMulticoreJit/Common", "clr, s String1, s String2, i4 Int1, i4 Int2, i4 Int3" },
    { 202, "ClrMulticoreJit/MethodCodeReturned", "clr, x8 ModuleID, x8 MethodID" },
    { 300, "ThreadPoolWorkingThreadCount/Start", "u4 Count, clr" },
    { 301, "ThreadPool/Enqueue", WORK },
    { 302, "ThreadPool/Dequeue", WORK },
    { 303, "ThreadPool/IOEnqueue", OVERLAPPED },
    { 304, "ThreadPool/IODequeue", OVERLAPPED },
    { 305, "ThreadPool/IOPack", OVERLAPPED },
    { 310, "LoaderHeap/AllocRequest",
      "p LoaderHeapPtr, p MemoryAddress, u4 RequestSize, pad4, pad4, pad4, clr" },
};

static const struct catalogue_event stress_events[] = {
    { 0, "StressLog/Start", "u4 Facility, u1 LogLevel, a Message, 1:clr" },
    { 1, "ClrStack/Walk", STACK },
};

static const struct catalogue_event sampler_events[] = {
    { 0, "Thread/Sample", "u4 Type=sample_type" },
};

/* Runtime 3.x tells the first only. */
static const struct catalogue_event eventpipe_events[] = {
    { 1, "ProcessInfo", "s CommandLine, s OSInformation, s ArchInformation" },
};

#define EVENTS(table) (table), sizeof(table) / sizeof *(table)

const struct catalogue_provider event_catalogue[] = {
    { RUNTIME_PROVIDER, false, EVENTS(runtime_events) },
    { RUNTIME_RUNDOWN_PROVIDER, false, EVENTS(rundown_events) },
    { RUNTIME_PRIVATE_PROVIDER, false, EVENTS(private_events) },
    { RUNTIME_STRESS_PROVIDER, false, EVENTS(stress_events) },
    { RUNTIME_SAMPLER_PROVIDER, false, EVENTS(sampler_events) },
    { RUNTIME_STREAM_PROVIDER, true, EVENTS(eventpipe_events) },
    { 0 },
};

const struct catalogue_event *event_catalogue_find(const char *provider, uint32_t event_id, bool described)
{
    const struct catalogue_provider *p = event_catalogue;
    while (p->name && strcmp(p->name, provider) != 0)
        p++;
    if (described && p->may_describe_itself)
        return NULL;
    for (size_t i = 0; i < p->count; i++)
        if (p->events[i].id == event_id)
            return &p->events[i];
    return NULL;
}
