#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/profile.h"
#include "analyse/runtime_work.h"
#include "base/own.h"
#include "trace/builder.h"

/* Frames are letters, root first; what they stand for. */
static const struct {
    char letter;
    const char *name, *module;
    enum code_kind kind;
} letters[] = {
    { 'm', "App.Program::Main()", "App", CODE_JIT },
    { 'r', "System.Array::Sort()", "System.Private.CoreLib", CODE_R2R },
    { 'E', "System.Runtime.EH::DispatchEx(int)", "System.Private.CoreLib", CODE_R2R },
    { 'p', "System.Threading.PortableThreadPool+WorkerThread::WorkerThreadStart()", "System.Private.CoreLib",
      CODE_R2R },
    { 's', "[precode]", "", CODE_STUB },
    { 'i', "dynamicClass::IL_STUB_PInvoke(int32)", "", CODE_DYNAMIC },
    { 'c', "memset", "libc.so.6", CODE_NATIVE },
    { 'k', "page_fault", "[kernel]", CODE_KERNEL },
    { 'g', "_Unwind_Resume", "libgcc_s.so.1", CODE_NATIVE },
    { 'J', "libclrjit.so!0x1000", "libclrjit.so", CODE_RUNTIME },
    { 'G', "libclrgc.so!0x1000", "libclrgc.so", CODE_RUNTIME },
    { 'W', "WKS::gc_heap::plan_phase", "libcoreclr.so", CODE_RUNTIME },
    { 'S', "SystemNative_Read", "libSystem.Native.so", CODE_RUNTIME },
    { 'n', "0x7f1", "libclrjit.so", CODE_NATIVE },
    { 'N', "JIT_New", "libcoreclr.so", CODE_RUNTIME },
    { 'A', "[allocation helper]", "libcoreclr.so", CODE_RUNTIME },
    { 'C', "GCInterface_Collect", "libcoreclr.so", CODE_RUNTIME },
    { 'T', "IL_Throw", "libcoreclr.so", CODE_RUNTIME },
    { 'Q', "RuntimeTypeHandle_GetFields", "libcoreclr.so", CODE_RUNTIME },
    { 'H', "JIT_RareDisableHelper", "libcoreclr.so", CODE_RUNTIME },
    { 'P', "JIT_CountProfile32", "libcoreclr.so", CODE_RUNTIME },
    { 'L', "ThreadNative_SpinWait", "libcoreclr.so", CODE_RUNTIME },
    { 'M', "System.Threading.Monitor.Enter", "libcoreclr.so", CODE_RUNTIME },
    { 'D', "System.RuntimeTypeHandle.GetAttributes", "libcoreclr.so", CODE_RUNTIME },
    { 'x', "libcoreclr.so!0x2000", "libcoreclr.so", CODE_RUNTIME },
    { 'y', "libcoreclr.so!0x3000", "libcoreclr.so", CODE_RUNTIME },
    { 'z', "libcoreclr.so!0x4000", "libcoreclr.so", CODE_RUNTIME },
};

static const struct {
    const char *stack, *thread;
    enum runtime_work_class work;
    uint32_t frames;
} cases[] = {
    { "m", "app", WORK_USER, 0 },
    { "mr", "app", WORK_USER, 0 },
    { "mc", "app", WORK_USER, 0 },
    { "mk", "app", WORK_USER, 0 },
    { "mS", "app", WORK_USER, 0 },    /* the class library's C part is no runtime */
    { "misSc", "app", WORK_USER, 0 }, /* P/Invoke: who called decides */
    { "xc", "app", WORK_OTHER, 2 },
    { "cc", "app", WORK_USER, 0 },
    { "mN", "app", WORK_GC, 1 }, /* or allocating: nothing was told */
    { "mNyck", "app", WORK_GC, 4 },
    { "mAz", "app", WORK_GC, 2 },
    { "mCy", "app", WORK_GC, 2 },
    { "mxG", "app", WORK_GC, 2 },
    { "mxW", "app", WORK_GC, 2 },
    { "cx", ".NET Server GC", WORK_GC, 2 },
    { "cx", ".NET BGC", WORK_GC, 2 },
    { "mxzJ", "app", WORK_JIT, 3 },
    { "mxzJzc", "app", WORK_JIT, 5 }, /* what the JIT asks the runtime is for it */
    { "mn", "app", WORK_JIT, 1 },     /* imported */
    { "mQJ", "app", WORK_JIT, 2 },
    { "cyz", ".NET Tiered Compilation Worker", WORK_JIT, 3 },
    { "cyz", ".NET Tiered Com", WORK_JIT, 3 },
    { "mxz", "app", WORK_TYPES, 2 }, /* x led to the JIT elsewhere */
    { "mQz", "app", WORK_TYPES, 2 },
    { "myz", "app", WORK_OTHER, 2 },
    { "mTy", "app", WORK_EXCEPTION, 2 },
    { "mTyEy", "app", WORK_EXCEPTION, 4 },
    { "mTyEymr", "app", WORK_USER, 0 }, /* a handler runs */
    { "mTyEymN", "app", WORK_GC, 1 },
    { "myg", "app", WORK_EXCEPTION, 2 },
    { "ms", "app", WORK_STUB, 1 },
    { "mi", "app", WORK_STUB, 1 },
    { "mH", "app", WORK_SUSPENSION, 1 },
    { "mP", "app", WORK_TIERING, 1 },
    { "mLc", "app", WORK_LOCK, 2 },
    { "mMy", "app", WORK_LOCK, 2 },
    { "mD", "app", WORK_TYPES, 1 },
    { "p", ".NET TP Worker", WORK_THREAD_POOL, 0 },
    { "pLk", ".NET TP Worker", WORK_THREAD_POOL, 2 },
    { "pyc", ".NET TP Worker", WORK_THREAD_POOL, 2 },
    { "pm", ".NET TP Worker", WORK_USER, 0 },
    { "pN", ".NET TP Worker", WORK_GC, 1 },
    { "cy", ".NET Finalizer", WORK_FINALIZER, 2 },
    { "mr", ".NET Finalizer", WORK_FINALIZER, 0 },
    { "mN", ".NET Finalizer", WORK_GC, 1 },
    { "mQ", ".NET Finalizer", WORK_TYPES, 1 },
    { "cy", ".NET SigHandler", WORK_OTHER, 2 },
    { "", ".NET BGC", WORK_GC, 0 },
};

/* The same stack when the runtime told whether it collects; by enum gc_time, first GC_TIME_NONE. */
static const struct {
    const char *stack, *thread;
    enum runtime_work_class none, others, own;
} timed[] = {
    { "m", "app", WORK_USER, WORK_USER, WORK_USER },
    { "mN", "app", WORK_ALLOCATION, WORK_GC, WORK_GC },
    { "mAz", "app", WORK_ALLOCATION, WORK_GC, WORK_GC },
    { "mCy", "app", WORK_GC, WORK_GC, WORK_GC },       /* GC.Collect() is there to collect */
    { "mQz", "app", WORK_TYPES, WORK_TYPES, WORK_GC }, /* what the runtime allocates itself */
    { "mQJ", "app", WORK_JIT, WORK_JIT, WORK_GC },     /* others may compile meanwhile */
    { "mTyEy", "app", WORK_EXCEPTION, WORK_EXCEPTION, WORK_GC },
    { "mxG", "app", WORK_GC, WORK_GC, WORK_GC },
    { "xc", "app", WORK_OTHER, WORK_OTHER, WORK_GC }, /* broken: the callers are missing */
    { "cx", ".NET Server GC", WORK_GC, WORK_GC, WORK_GC },
    { "mN", ".NET Finalizer", WORK_ALLOCATION, WORK_GC, WORK_GC },
    { "pN", ".NET TP Worker", WORK_ALLOCATION, WORK_GC, WORK_GC },
};

static uint32_t function_of(struct trace_builder *b, char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(letters); i++)
        if (letters[i].letter == letter)
            return trace_builder_function(
                b, &(struct trace_function){ .name = trace_add_string(&b->trace, letters[i].name),
                                             .module = trace_add_string(&b->trace, letters[i].module),
                                             .type_params = trace_add_string(&b->trace, ""),
                                             .kind = letters[i].kind });
    fail_msg("no letter '%c'", letter);
    return 0;
}

static uint32_t stack_of(struct trace_builder *b, const char *text)
{
    uint32_t functions[16];
    size_t count = strlen(text);
    for (size_t i = 0; i < count; i++)
        functions[i] = function_of(b, text[i]);
    return count ? trace_builder_named_stack(b, functions, count) : (uint32_t)STACK_WHOLE;
}

static uint32_t thread_of(struct trace_builder *b, uint32_t tid, const char *name)
{
    uint32_t thread = trace_builder_thread(b, 1, tid, 0);
    trace_builder_thread_name(b, 1, tid, span_of(name, strlen(name)), 0);
    return thread;
}

static void test_classes(void **state)
{
    (void)state;
    struct trace_builder b;
    uint32_t stacks[ARRAY_LEN(cases)], threads[ARRAY_LEN(cases)];
    trace_builder_init(&b, 64);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        stacks[i] = stack_of(&b, cases[i].stack);
        threads[i] = thread_of(&b, (uint32_t)(100 + i), cases[i].thread);
    }
    struct runtime_work work;
    runtime_work_init(&work, &b.trace);
    assert_true(work.has_runtime);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t frames = 99;
        enum runtime_work_class found =
            runtime_work_of(&work, stacks[i], threads[i], GC_TIME_UNTOLD, &frames);
        if (found != cases[i].work || frames != cases[i].frames)
            fail_msg("'%s' on '%s': %s with %u frames, not %s with %u", cases[i].stack, cases[i].thread,
                     runtime_work_name(found), frames, runtime_work_name(cases[i].work), cases[i].frames);
    }
    /* ids that are none */
    assert_int_equal(runtime_work_of(&work, UINT32_MAX, UINT32_MAX, GC_TIME_NONE, NULL), WORK_USER);
    runtime_work_done(&work);
    trace_builder_done(&b);
}

/* Of a perf.data whose process is gone jitted code has no names; the runtime that called it does not run it.
 */
static void test_unnamed(void **state)
{
    static const struct {
        enum image_kind leaf;
        enum runtime_work_class work;
    } kinds[] = { { IMAGE_JIT, WORK_USER },
                  { IMAGE_ANON, WORK_USER },
                  { IMAGE_PE, WORK_USER },
                  { IMAGE_ELF, WORK_OTHER } };
    static const uint64_t addrs[] = { 0x20010, 0x10010 };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct trace_builder b;
        trace_builder_init(&b, 64);
        uint32_t process = trace_builder_process_start(&b, 1, 0), thread = thread_of(&b, 1, "app");
        uint32_t runtime = trace_builder_image(&b, span_of("/libcoreclr.so", 14), IMAGE_ELF, 8, 1, 1);
        uint32_t leaf = trace_builder_image(&b, span_of("/leaf", 5), kinds[i].leaf, 8, 1, 2);
        trace_builder_mapping(&b, process, 0x10000, 0x1000, 0, runtime, 0);
        trace_builder_mapping(&b, process, 0x20000, 0x1000, 0, leaf, 0);
        uint32_t stack = trace_builder_stack(&b, process, addrs, ARRAY_LEN(addrs), true, 1, STACK_WHOLE);
        for (uint32_t at = 1; at < b.trace.locations.count; at++)
            if (b.trace.locations.rows[at].addr == addrs[1])
                b.trace.locations.rows[at].function = function_of(&b, 'x');
        struct runtime_work work;
        runtime_work_init(&work, &b.trace);
        assert_int_equal(runtime_work_of(&work, stack, thread, GC_TIME_UNTOLD, NULL), kinds[i].work);
        runtime_work_done(&work);
        trace_builder_done(&b);
    }
}

static void test_times(void **state)
{
    (void)state;
    struct trace_builder b;
    uint32_t stacks[ARRAY_LEN(timed)], threads[ARRAY_LEN(timed)];
    trace_builder_init(&b, 64);
    for (size_t i = 0; i < ARRAY_LEN(timed); i++) {
        stacks[i] = stack_of(&b, timed[i].stack);
        threads[i] = thread_of(&b, (uint32_t)(100 + i), timed[i].thread);
    }
    struct runtime_work work;
    runtime_work_init(&work, &b.trace);
    for (size_t i = 0; i < ARRAY_LEN(timed); i++) {
        const enum runtime_work_class wanted[GC_TIMES] = {
            [GC_TIME_NONE] = timed[i].none, [GC_TIME_OTHERS] = timed[i].others, [GC_TIME_OWN] = timed[i].own
        };
        for (enum gc_time when = GC_TIME_NONE; when < GC_TIMES; when++) {
            enum runtime_work_class found = runtime_work_of(&work, stacks[i], threads[i], when, NULL);
            if (found != wanted[when])
                fail_msg("'%s' on '%s' at %d: %s, not %s", timed[i].stack, timed[i].thread, (int)when,
                         runtime_work_name(found), runtime_work_name(wanted[when]));
        }
    }
    runtime_work_done(&work);
    trace_builder_done(&b);
}

static void test_without_runtime(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    stack_of(&b, "cckg");
    stack_of(&b, "mr"); /* managed code alone, as files of other tools have it */
    struct runtime_work work;
    runtime_work_init(&work, &b.trace);
    assert_false(work.has_runtime);
    runtime_work_done(&work);
    trace_builder_done(&b);
}

/* The frames of a node's path, the root's child first. How many. */
static uint32_t path_of(const struct profile *p, uint32_t node, uint32_t *out_frames)
{
    uint32_t depth = 0;
    for (uint32_t at = node; at; at = p->nodes[at].parent)
        depth++;
    for (uint32_t i = depth; i-- > 0; node = p->nodes[node].parent)
        out_frames[i] = p->nodes[node].frame;
    return depth;
}

/* The path of a sample's node, as names with '>' between. */
static void path_text(const struct profile *p, size_t sample, char *out, size_t out_size)
{
    uint32_t frames[16], depth = path_of(p, p->sample_node[sample], frames);
    out[0] = 0;
    for (uint32_t i = 0; i < depth; i++)
        snprintf(out + strlen(out), out_size - strlen(out), "%s%s", i ? ">" : "", p->frames[frames[i]].name);
}

static const struct {
    const char *stack, *path;
} folds[] = {
    { "m", "App.Program.Main" },
    { "xym", "[runtime]>App.Program.Main" },
    { "cxym", "memset>[runtime]>App.Program.Main" },
    { "mNyck", "App.Program.Main>[GC]" },
    { "mxJz", "App.Program.Main>[JIT]" },
    { "msxmr", "App.Program.Main>[runtime]>App.Program.Main>System.Array.Sort" },
    { "mTyEymc", "App.Program.Main>[runtime]>App.Program.Main>memset" },
    { "mTyEyc", "App.Program.Main>[exceptions]" },
    { "misSc", "App.Program.Main>[runtime]>SystemNative_Read>memset" },
};

static void test_folding(void **state)
{
    (void)state;
    struct trace_builder b;
    struct profile *p;
    struct error err;
    char path[512];
    trace_builder_init(&b, 64);
    b.trace.symbolized = true;
    uint32_t thread = trace_builder_thread(&b, 1, 2, 0);
    for (size_t i = 0; i < ARRAY_LEN(folds); i++)
        trace_push_sample(&b.trace.samples, 1000 + i, thread, stack_of(&b, folds[i].stack), 10, SAMPLE_CPU,
                          0);
    assert_true(profile_build(&b.trace, &(struct profile_options){ .group_runtime = true }, &p, &err));
    for (size_t i = 0; i < ARRAY_LEN(folds); i++) {
        path_text(p, i, path, sizeof path);
        assert_string_equal(path, folds[i].path);
    }
    assert_true(p->counts.work_known);
    assert_int_equal(p->counts.weight, 10 * ARRAY_LEN(folds));
    assert_int_equal(p->counts.work[WORK_GC], 10);
    assert_int_equal(p->counts.work[WORK_JIT], 10);
    assert_int_equal(p->counts.work[WORK_EXCEPTION], 10);
    assert_int_equal(p->counts.work[WORK_USER], 60);
    assert_int_equal(p->total[0], p->counts.weight);
    profile_free(p);
    /* the split is the same when nothing is folded */
    assert_true(profile_build(&b.trace, &(struct profile_options){ 0 }, &p, &err));
    assert_int_equal(p->counts.work[WORK_USER], 60);
    path_text(p, 3, path, sizeof path);
    assert_string_equal(path, "App.Program.Main>JIT_New>libcoreclr.so!0x3000>memset>page_fault");
    profile_free(p);
    trace_builder_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes), cmocka_unit_test(test_times),
        cmocka_unit_test(test_unnamed), cmocka_unit_test(test_without_runtime),
        cmocka_unit_test(test_folding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
