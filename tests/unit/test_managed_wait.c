/* What a thread waits for, by the frames on its stack; what is no wait, and what is somebody else's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/idle_thread.h"
#include "analyse/managed_wait.h"
#include "base/own.h"

enum { FRAMES_MAX = 14 };

struct frame {
    const char *name, *module;
    uint8_t kind, resolver;
};

#define CORE "System.Private.CoreLib"
#define FUTEX                                                                                                \
    {                                                                                                        \
        "pthread_cond_wait", "libc.so.6", CODE_NATIVE, RESOLVER_ELF_DYNSYM                                   \
    }
#define METHOD(name)                                                                                         \
    {                                                                                                        \
        name, CORE, CODE_R2R, RESOLVER_R2R                                                                   \
    }
#define JITTED(name, module)                                                                                 \
    {                                                                                                        \
        name, module, CODE_JIT, RESOLVER_MEMORY                                                              \
    }
#define RUNTIME(name, resolver)                                                                              \
    {                                                                                                        \
        name, "libcoreclr.so", CODE_RUNTIME, resolver                                                        \
    }

static const struct {
    const char *waits; /* or NULL */
    struct frame frames[FRAMES_MAX];
} stacks[] = {
    { "Monitor.Enter",
      { FUTEX, RUNTIME("Monitor_Enter_Slowpath", RESOLVER_QCALL),
        METHOD("System.Threading.Monitor.Enter_Slowpath"), METHOD("System.Threading.Monitor.Enter"),
        JITTED("Shop.Orders.Save", "shop") } },
    { "SemaphoreSlim.Wait", /* the outermost of them */
      { FUTEX, METHOD("System.Threading.Monitor.Wait"), METHOD("System.Threading.SemaphoreSlim.WaitCore"),
        JITTED("Shop.Program.Main", "shop") } },
    { "BlockingCollection.Take", /* of a generic type */
      { FUTEX,
        METHOD("System.Threading.SemaphoreSlim.WaitCore"),
        { "System.Collections.Concurrent.BlockingCollection<KeyValuePair<int,string>>."
          "TryTakeWithNoTimeValidation",
          "System.Collections.Concurrent", CODE_R2R, RESOLVER_R2R },
        JITTED("Shop.Program.Main", "shop") } },
    { "Task.Wait", /* of a generic method */
      { FUTEX, METHOD("System.Runtime.CompilerServices.TaskAwaiter.GetResult<T>") } },
    { "Thread.Join", /* the method itself was optimized away: what implements it is there */
      { FUTEX, RUNTIME("libcoreclr.so!0x2c6550", RESOLVER_EH_FRAME),
        RUNTIME("System.Threading.Thread.Join", RESOLVER_FCALL), JITTED("Shop.Program.Main", "shop") } },
    { "GC.WaitForPendingFinalizers",
      { FUTEX, RUNTIME("GCInterface_WaitForPendingFinalizers", RESOLVER_QCALL),
        JITTED("Shop.Program.Main", "shop") } },
    { "Thread.Join",
      { FUTEX, RUNTIME("ThreadNative_Join", RESOLVER_QCALL), JITTED("Shop.Program.Main", "shop") } },
    { "SemaphoreSlim.Wait",
      { FUTEX, RUNTIME("Monitor_Wait", RESOLVER_QCALL), METHOD("System.Threading.SemaphoreSlim.WaitCore") } },
    { "wait for a static constructor",
      { FUTEX, RUNTIME("libcoreclr.so!0x3dcb00", RESOLVER_EH_FRAME),
        RUNTIME("InitClassHelper", RESOLVER_QCALL),
        METHOD("System.Runtime.CompilerServices.InitHelpers.InitClassSlow"),
        JITTED("Shop.Order.Get", "shop") } },
    { "wait for a static constructor", /* Native AOT */
      { FUTEX, METHOD("System.Threading.Lock.TryEnterSlow"),
        METHOD("System.Runtime.CompilerServices.ClassConstructorRunner.DeadlockAwareAcquire"),
        METHOD("System.Runtime.CompilerServices.ClassConstructorRunner.EnsureClassConstructorRun"),
        JITTED("Shop.Order.Get", "shop") } },
    { "Thread.Join",
      { FUTEX, METHOD("System.Threading.WaitHandle.WaitOneNoCheck"),
        METHOD("System.Threading.Thread.JoinInternal"), JITTED("Shop.Program.Main", "shop") } },
    { "Monitor.Enter", /* of a method that is synchronized */
      { FUTEX, METHOD("System.Threading.Lock.TryEnterSlow"),
        METHOD("Internal.Runtime.CompilerHelpers.SynchronizedMethodHelpers.MonitorEnter"),
        JITTED("Shop.Order.Get", "shop") } },
    { "ReaderWriterLock.AcquireReaderLock",
      { FUTEX, METHOD("System.Threading.ManualResetEventSlim.Wait"),
        METHOD("System.Threading.ReaderWriterLock.AcquireReaderLock"), JITTED("Shop.Order.Get", "shop") } },
    { "SpinWait.SpinUntil",
      { FUTEX, METHOD("System.Threading.Thread.Sleep"), METHOD("System.Threading.SpinWait.SpinUntil"),
        JITTED("Shop.Order.Get", "shop") } },
    { NULL, /* it runs that */
      { FUTEX, METHOD("System.Net.Socket..cctor"), RUNTIME("InitClassHelper", RESOLVER_QCALL),
        METHOD("System.Runtime.CompilerServices.InitHelpers.InitClassSlow"),
        JITTED("Shop.Order.Get", "shop") } },
    { NULL, /* it waits itself; whoever called it does not */
      { FUTEX, JITTED("Shop.Native.Poll", "shop"), METHOD("System.Threading.Tasks.Task.Wait") } },
    { NULL, /* a method that is called alike */
      { FUTEX, METHOD("System.Threading.LogicalMonitor.Enter"),
        METHOD("System.Threading.Monitor.EnterLate") } },
    { NULL, { FUTEX, { "System.Threading.Thread.Join", "libother.so", CODE_NATIVE, RESOLVER_ELF_DYNSYM } } },
    { NULL, { FUTEX, METHOD(">"), METHOD("a>"), METHOD(""), METHOD("Monitor.Enter<") } },
};

static void build(const struct frame *frames, struct profile_frame *named, struct shown_stack *out)
{
    out->count = 0;
    for (size_t i = 0; i < FRAMES_MAX && frames[i].name; i++) {
        const struct frame *f = &frames[i];
        named[i] = (struct profile_frame){
            .name = f->name, .module = f->module, .kind = f->kind, .resolver = f->resolver
        };
        out->frames[out->count++] = (struct shown_frame){ &named[i], NULL };
    }
}

static void test_waits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(stacks); i++) {
        static struct shown_stack stack;
        struct profile_frame named[FRAMES_MAX];
        build(stacks[i].frames, named, &stack);
        const char *waits = managed_wait_name(&stack);
        if (!waits != !stacks[i].waits || (waits && strcmp(waits, stacks[i].waits) != 0))
            fail_msg("stack %zu: %s", i, waits ? waits : "nothing");
    }
}

/* In a program compiled ahead it waits in managed code, in others in the runtime's. */
static void test_finalizer(void **state)
{
    static const struct frame ahead[] = { FUTEX,
                                          METHOD("System.Runtime.__Finalizer.ProcessFinalizers"),
                                          { 0 } };
    static const struct frame at_work[] = {
        FUTEX, METHOD("Shop.Order.Finalize"), METHOD("System.Runtime.__Finalizer.ProcessFinalizers"), { 0 }
    };
    static struct shown_stack stack;
    struct profile_frame named[FRAMES_MAX];
    (void)state;
    build(ahead, named, &stack);
    assert_string_equal(idle_thread_kind(".NET Finalizer", &stack, true), "finalizer");
    assert_null(idle_thread_kind(".NET Finalizer", &stack, false));
    assert_string_equal(idle_thread_kind("", &stack, true), "finalizer"); /* of a core dump */
    build(at_work, named, &stack);
    assert_null(idle_thread_kind(".NET Finalizer", &stack, true));
    assert_null(idle_thread_kind("", &stack, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_finalizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
