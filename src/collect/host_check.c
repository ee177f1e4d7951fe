#include "collect/host_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/hw_breakpoint.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/proc_file.h"
#include "collect/target_access.h"
#include "collect/tracepoint.h"
#include "read/tracepoint_format.h"

__attribute__((format(printf, 2, 3))) static void detail(struct host_check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->detail, sizeof c->detail, format, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void fix(struct host_check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->fix, sizeof c->fix, format, args);
    va_end(args);
}

static struct perf_event_attr cpu_clock(void)
{
    return (struct perf_event_attr){
        .size = sizeof(struct perf_event_attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = 1000000000,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
        .disabled = 1,
        .exclude_hv = 1,
    };
}

/* A descriptor, or -1 with errno. */
static int open_counter(struct perf_event_attr attr, pid_t pid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int64_t paranoid(void)
{
    int64_t level = -1;
    proc_file_number("/proc/sys/kernel/perf_event_paranoid", &level);
    return level;
}

/* Fills in how a counter fared. `level`: the highest perf_event_paranoid at which it needs no rights. */
static void judge_counter(struct host_check *c, int fd, int level, const char *capability)
{
    int e = errno;
    c->ok = fd >= 0;
    c->denied = !c->ok && (e == EACCES || e == EPERM);
    if (c->ok)
        return;
    if (!c->denied) {
        detail(c, "perf_event_open: %s",
               e == ENOSYS ? "the kernel was built without perf events" : strerror(e));
        return;
    }
    if (paranoid() > level) {
        detail(c, "perf_event_paranoid is %" PRId64 " and %s is missing", paranoid(), capability);
        fix(c, "run with sudo, or: sudo sysctl kernel.perf_event_paranoid=%d", level);
    } else {
        detail(c, "the kernel or a container's seccomp filter refuses it: %s", strerror(e));
        fix(c, "in a container add the capability %s (docker run --cap-add PERFMON)", capability);
    }
}

static void check_user_samples(struct host_check *c)
{
    struct perf_event_attr attr = cpu_clock();
    attr.exclude_kernel = 1;
    AUTO_FD int fd = open_counter(attr, 0, -1);
    judge_counter(c, fd, 2, "CAP_PERFMON");
    if (c->ok)
        detail(c, "perf_event_paranoid is %" PRId64, paranoid());
}

static void check_kernel_samples(struct host_check *c)
{
    AUTO_FD int fd = open_counter(cpu_clock(), 0, -1);
    judge_counter(c, fd, 1, "CAP_PERFMON");
}

static void check_all_cpus(struct host_check *c)
{
    AUTO_FD int fd = open_counter(cpu_clock(), -1, 0);
    judge_counter(c, fd, 0, "CAP_PERFMON");
}

static void check_hardware_counter(struct host_check *c)
{
    struct perf_event_attr attr = cpu_clock();
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_CPU_CYCLES;
    attr.exclude_kernel = 1;
    AUTO_FD int fd = open_counter(attr, 0, -1);
    judge_counter(c, fd, 2, "CAP_PERFMON");
    if (!c->ok && !c->denied) {
        detail(c, "this (virtual) machine shows no cycle counter");
        fix(c, "enable the virtual PMU of the machine; the timer (cpu-clock) is used meanwhile");
    }
}

/* They happen in the kernel: who may not look into it sees none. */
static void check_switches(struct host_check *c)
{
    struct perf_event_attr attr = cpu_clock();
    attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    AUTO_FD int fd = open_counter(attr, 0, -1);
    judge_counter(c, fd, 1, "CAP_PERFMON");
}

/* A ring as large as recording likes it. */
static void check_rings(struct host_check *c)
{
    enum { RING_BYTES = 2 << 20 };
    struct perf_event_attr attr = cpu_clock();
    attr.exclude_kernel = 1;
    AUTO_FD int fd = open_counter(attr, 0, -1);
    if (fd < 0) {
        judge_counter(c, fd, 2, "CAP_PERFMON");
        return;
    }
    size_t size = RING_BYTES + (size_t)sysconf(_SC_PAGESIZE);
    void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int64_t pool_kib = 0;
    struct rlimit limit = { 0 };
    proc_file_number("/proc/sys/kernel/perf_event_mlock_kb", &pool_kib);
    getrlimit(RLIMIT_MEMLOCK, &limit);
    c->ok = ring != MAP_FAILED;
    if (c->ok) {
        munmap(ring, size);
        detail(c, "2 MiB per CPU");
        return;
    }
    c->denied = true;
    detail(c, "2 MiB were refused: perf_event_mlock_kb is %" PRId64 ", ulimit -l is %" PRIu64 " KiB",
           pool_kib, (uint64_t)limit.rlim_cur / 1024);
    fix(c, "sudo sysctl kernel.perf_event_mlock_kb=%ld", 2064 * sysconf(_SC_NPROCESSORS_ONLN));
}

static void check_depth(struct host_check *c)
{
    int64_t depth = 0;
    c->ok = proc_file_number("/proc/sys/kernel/perf_event_max_stack", &depth) && depth >= 127;
    detail(c, "perf_event_max_stack is %" PRId64, depth);
    if (!c->ok)
        fix(c, "sudo sysctl kernel.perf_event_max_stack=512");
}

static void check_tracepoints(struct host_check *c)
{
    struct error err = { 0 };
    uint32_t id = 0;
    struct buffer text;
    buffer_init(&text, TRACEPOINT_FORMAT_BYTES_MAX);
    bool told = tracepoint_read_format("sched/sched_switch", &text, &err) &&
                tracepoint_format_id(buffer_span(&text), &id);
    buffer_done(&text);
    if (!told) {
        c->denied = err.kind == ERROR_PERMISSION;
        detail(c, "%s", err.what);
        fix(c, "%s", err.hint);
        return;
    }
    struct perf_event_attr attr = cpu_clock();
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = id;
    attr.sample_period = 1;
    AUTO_FD int fd = open_counter(attr, 0, -1);
    judge_counter(c, fd, -1, "CAP_PERFMON");
}

/* `r0 = 0; exit` as the kind of program that looks at scheduling. */
static void check_bpf(struct host_check *c)
{
    struct bpf_insn program[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
        { .code = BPF_JMP | BPF_EXIT },
    };
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
    attr.insns = (uint64_t)(uintptr_t)program;
    attr.insn_cnt = ARRAY_LEN(program);
    attr.license = (uint64_t)(uintptr_t) "Dual MIT/GPL";
    AUTO_FD int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
    int e = errno;
    c->ok = fd >= 0;
    c->denied = !c->ok && (e == EPERM || e == EACCES);
    if (c->denied) {
        detail(c, "CAP_BPF and CAP_PERFMON are missing");
        fix(c, "run with sudo");
    } else if (!c->ok) {
        detail(c, "bpf: %s", e == ENOSYS ? "the kernel was built without it" : strerror(e));
    }
    AUTO_FD int btf = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
    if (c->ok && btf < 0) {
        c->ok = false;
        detail(c, "/sys/kernel/btf/vmlinux is not there");
        fix(c, "use a kernel built with CONFIG_DEBUG_INFO_BTF");
    }
}

/* Rights are looked at before the missing path is: EINVAL means that we may. */
static void check_uprobes(struct host_check *c)
{
    int64_t type = 0;
    if (!proc_file_number("/sys/bus/event_source/devices/uprobe/type", &type)) {
        detail(c, "the kernel has no uprobe events");
        return;
    }
    struct perf_event_attr attr = { .size = sizeof attr, .type = (uint32_t)type, .disabled = 1 };
    AUTO_FD int fd = open_counter(attr, 0, -1);
    int e = errno;
    c->ok = fd >= 0 || e == EINVAL || e == EFAULT;
    c->denied = !c->ok && (e == EACCES || e == EPERM);
    if (c->ok)
        return;
    if (!c->denied) {
        detail(c, "perf_event_open: %s", strerror(e));
        return;
    }
    detail(c, "the kernel asks for CAP_SYS_ADMIN, which is missing");
    fix(c, "run with sudo");
}

static void check_breakpoints(struct host_check *c)
{
    static uint64_t watched;
    struct perf_event_attr attr = cpu_clock();
    attr.type = PERF_TYPE_BREAKPOINT;
    attr.config = 0;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.exclude_kernel = 1;
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (uint64_t)(uintptr_t)&watched;
    attr.bp_len = HW_BREAKPOINT_LEN_8;
    AUTO_FD int fd = open_counter(attr, 0, -1);
    judge_counter(c, fd, 2, "CAP_PERFMON");
    if (!c->ok && !c->denied) {
        detail(c, "the processor or the virtual machine has no debug registers to give");
        fix(c, "end other debuggers on this machine, or use other hardware");
    }
}

static void check_kernel_symbols(struct host_check *c)
{
    char text[64] = "";
    AUTO_FD int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    uint64_t addr = got > 0 ? strtoull(text, NULL, 16) : 0;
    c->ok = addr != 0;
    if (c->ok)
        return;
    c->denied = true;
    int64_t restricted = 0;
    proc_file_number("/proc/sys/kernel/kptr_restrict", &restricted);
    detail(c, "/proc/kallsyms shows no addresses (kptr_restrict is %" PRId64 ")", restricted);
    fix(c, "run with sudo%s", restricted > 1 ? " after: sudo sysctl kernel.kptr_restrict=1" : "");
}

static void check_openat2(struct host_check *c)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    AUTO_FD int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);
    c->ok = fd >= 0;
    if (!c->ok) {
        detail(c, "openat2: %s", strerror(errno));
        fix(c, "use a kernel from 5.6 on, or a container engine that knows openat2");
    }
}

static const struct {
    const char *name, *title, *lost;
    void (*run)(struct host_check *c);
} machine_checks[] = {
    { "cpu_samples", "CPU samples", "no CPU profile at all", check_user_samples },
    { "kernel_stacks", "kernel stacks", "what happens below a system call is not shown",
      check_kernel_samples },
    { "all_cpus", "all processes at once", "no -a, and processes are not followed from their start",
      check_all_cpus },
    { "hardware_counters", "hardware counters", "no cycles, no cache misses; CPU samples come from a timer",
      check_hardware_counter },
    { "context_switches", "context switches", "no waiting times", check_switches },
    { "ring_buffers", "large ring buffers", "samples are lost earlier under load", check_rings },
    { "stack_depth", "deep stacks", "stacks are cut at fewer frames", check_depth },
    { "tracepoints", "kernel tracepoints", "no wake-ups, no system calls, no scheduler events",
      check_tracepoints },
    { "bpf", "BPF", "waits are not filtered in the kernel: more overhead, fewer of them", check_bpf },
    { "uprobes", "probes on native functions", "no uprobe: events", check_uprobes },
    { "breakpoints", "hardware breakpoints", "no method: events on managed methods", check_breakpoints },
    { "kernel_symbols", "names of kernel functions", "kernel frames show as [kernel]", check_kernel_symbols },
    { "openat2", "safe opening of a target's files",
      "links inside containers are refused, some names are missing", check_openat2 },
};

struct host_check *host_check_add(struct host_check_list *list, const char *name, const char *title,
                                  const char *lost)
{
    struct host_check *c = &list->items[list->count++];
    *c = (struct host_check){ .name = name, .title = title, .lost = lost };
    return c;
}

static void check_ability(const struct target *t, enum target_ability ability, struct host_check *c)
{
    struct target_access access = target_try(t, ability);
    c->ok = access.ok;
    c->denied = access.kind == ERROR_PERMISSION;
    detail(c, "%s", access.reason);
    fix(c, "%s", access.fix);
}

/* How the layout of the runtime's memory became known, and what was found by it. */
static void check_walk(const struct target *t, struct host_check_list *list, struct host_check *c)
{
    static const char *const ways[] = {
        [LAYOUT_DESCRIBED] = "the runtime's own description",
        [LAYOUT_MEASURED] = "the table of layouts",
        [LAYOUT_DERIVED] = "a layout derived from the process, as its version is not in the table",
    };
    struct target_walk *walk = &list->walk;
    struct error err;
    c->ok = list->walked = target_walk_try(t, walk, &err);
    if (!c->ok) {
        detail(c, "%s", err.what);
        fix(c, "%s", err.hint);
        return;
    }
    detail(c,
           "by %s%s%s: %" PRIu32 " of %" PRIu32 " methods checked agree with metadata, %" PRIu64
           " jitted methods seen",
           ways[walk->way], walk->version.text[0] ? ", .NET " : "", walk->version.text, walk->agreed,
           walk->checked, walk->methods + walk->dynamic);
}

static void check_target(const struct target *t, struct host_check_list *list)
{
    check_ability(
        t, TARGET_SAMPLE,
        host_check_add(list, "target_sample", "CPU samples of the process", "no CPU profile of it"));
    check_ability(t, TARGET_EVENTS,
                  host_check_add(list, "target_events", "its runtime events",
                                 "no GC, JIT, allocation or exception data"));
    check_ability(
        t, TARGET_MEMORY,
        host_check_add(
            list, "target_memory", "its memory",
            "jitted methods are named by the runtime's events only, not by reading its code heaps"));
    if (t->runtime == RUNTIME_CORECLR && list->items[list->count - 1].ok)
        check_walk(
            t, list,
            host_check_add(
                list, "target_walk", "names of jitted code from its memory",
                "jitted methods are named by the runtime's events only; stacks follow frame pointers"));
}

void host_check_run(const struct target *t, struct host_check_list *out)
{
    out->count = 0;
    for (size_t i = 0; i < ARRAY_LEN(machine_checks); i++)
        machine_checks[i].run(
            host_check_add(out, machine_checks[i].name, machine_checks[i].title, machine_checks[i].lost));
    if (t)
        check_target(t, out);
}

const struct host_check *host_check_essential(const struct host_check_list *list)
{
    const struct host_check *essential = &list->items[0];
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, "target_sample") == 0)
            essential = &list->items[i];
    }
    return essential;
}
