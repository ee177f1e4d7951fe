#include "collect/target_access.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory_thread.h"
#include "base/own.h"
#include "base/target_root.h"
#include "collect/proc_file.h"
#include "collect/target_probe.h"

const char *target_ability_name(enum target_ability ability)
{
    static const char *const names[] = { "sample", "events", "memory" };
    return names[ability];
}

/* Why the kernel keeps us away from a process, in words; ours and its user ids decide. */
static void explain_owner(const struct target *t, struct target_access *access, const char *capability)
{
    access->kind = ERROR_PERMISSION;
    if (geteuid() == 0) {
        snprintf(access->reason, sizeof access->reason, "root lacks %s over it here, as in a container",
                 capability);
        snprintf(access->fix, sizeof access->fix,
                 "run clrperf on the host, or start the container with --cap-add %s", capability);
        return;
    }
    if (t->uid != geteuid()) {
        snprintf(access->reason, sizeof access->reason,
                 "it belongs to uid %u, this runs as uid %u without %s", t->uid, geteuid(), capability);
        snprintf(access->fix, sizeof access->fix, "run as that user or with sudo");
        return;
    }
    int64_t yama = 0;
    if (proc_file_number("/proc/sys/kernel/yama/ptrace_scope", &yama) && yama > 0) {
        snprintf(access->reason, sizeof access->reason,
                 "kernel.yama.ptrace_scope is %" PRId64 " and %s is missing", yama, capability);
        snprintf(access->fix, sizeof access->fix,
                 "run with sudo, or: sudo sysctl kernel.yama.ptrace_scope=0");
        return;
    }
    snprintf(access->reason, sizeof access->reason,
             "the process does not let its own user look (more capabilities than ours, or not dumpable)");
    snprintf(access->fix, sizeof access->fix, "run with sudo");
}

static struct target_access try_sample(const struct target *t)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = 1000000000,
        .sample_type = PERF_SAMPLE_IP,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    AUTO_FD int fd =
        (int)syscall(SYS_perf_event_open, &attr, memory_thread_of(t->pid), -1, -1, PERF_FLAG_FD_CLOEXEC);
    int e = errno;
    struct target_access access = { .ok = fd >= 0, .kind = ERROR_UNSUPPORTED };
    if (access.ok)
        return (struct target_access){ .ok = true };
    int64_t paranoid = 0;
    proc_file_number("/proc/sys/kernel/perf_event_paranoid", &paranoid);
    if ((e == EACCES || e == EPERM) && paranoid > 2) {
        access.kind = ERROR_PERMISSION;
        snprintf(access.reason, sizeof access.reason,
                 "perf_event_paranoid is %" PRId64 " and CAP_PERFMON is missing", paranoid);
        snprintf(access.fix, sizeof access.fix,
                 "run with sudo, or: sudo sysctl kernel.perf_event_paranoid=2");
    } else if (e == EACCES || e == EPERM) {
        explain_owner(t, &access, "CAP_PERFMON or CAP_SYS_PTRACE");
    } else {
        snprintf(access.reason, sizeof access.reason, "perf_event_open does not work here: %s", strerror(e));
        snprintf(access.fix, sizeof access.fix, "clrperf doctor says what this machine allows");
    }
    return access;
}

/* What connect() asks for, without waking the target. */
static bool socket_is_in_reach(const struct target *t)
{
    AUTO_FD int root = -1;
    AUTO_FD int handle = -1;
    struct target_file_rules rules = { .kind = TARGET_FILE_SOCKET };
    if (!target_root_open(t->pid, &root, NULL) ||
        !target_root_open_path(root, t->socket, rules, &handle, NULL))
        return false;
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    return faccessat(AT_FDCWD, link, W_OK, AT_EACCESS) == 0;
}

/* A runtime without a socket; also what there is to be had without its help. */
static void explain_silence(const struct target *t, struct target_access *access)
{
    static const char beside[] = "; clrperf record (CPU) and clrperf stack do not need the runtime's help";
    access->kind = ERROR_UNSUPPORTED;
    if (t->diagnostics_off) {
        snprintf(access->reason, sizeof access->reason, "its environment sets DOTNET_EnableDiagnostics=0");
        snprintf(access->fix, sizeof access->fix, "start it without that variable%s", beside);
        return;
    }
    bool may_have = t->runtime == RUNTIME_CORECLR;
    snprintf(access->reason, sizeof access->reason, "it has no diagnostics socket%s",
             may_have ? " where it should be" : "");
    snprintf(access->fix, sizeof access->fix, "%s%s",
             may_have ? "look for the socket in its TMPDIR, which it must be able to write to; starting it "
                        "anew makes one"
                      : "build it with EventSourceSupport=true",
             beside);
}

static struct target_access try_events(const struct target *t)
{
    struct target_access access = { .kind = ERROR_UNSUPPORTED };
    if (!t->socket && t->maps_denied && !t->diagnostics_off) {
        explain_owner(t, &access, "CAP_SYS_PTRACE");
        return access;
    }
    if (!t->socket && t->runtime == RUNTIME_NONE && !t->maps_denied && !t->diagnostics_off) {
        snprintf(access.reason, sizeof access.reason, "it runs no .NET runtime");
        snprintf(access.fix, sizeof access.fix, "clrperf ps lists the .NET processes");
        return access;
    }
    if (!t->socket) {
        explain_silence(t, &access);
        return access;
    }
    if (!socket_is_in_reach(t)) {
        access.kind = ERROR_PERMISSION;
        snprintf(access.reason, sizeof access.reason,
                 "its diagnostics socket belongs to uid %u, this runs as uid %u", t->socket_owner, geteuid());
        snprintf(access.fix, sizeof access.fix, "run as that user or with sudo");
        return access;
    }
    if (proc_file_stays_stopped(t->pid)) {
        snprintf(access.reason, sizeof access.reason, "it is stopped, and a stopped runtime does not answer");
        snprintf(access.fix, sizeof access.fix, "let it go on with: kill -CONT %d", (int)t->pid);
        return access;
    }
    return (struct target_access){ .ok = true };
}

static struct target_access try_memory(const struct target *t)
{
    struct target_access access = { 0 };
    uint64_t word;
    struct iovec ours = { &word, sizeof word }, its = { (void *)(uintptr_t)t->some_addr, sizeof word };
    if (t->some_addr &&
        process_vm_readv(memory_thread_of(t->pid), &ours, 1, &its, 1, 0) == (ssize_t)sizeof word) {
        access.ok = true;
        return access;
    }
    int e = t->some_addr ? errno : EPERM;
    if (e == ENOSYS) {
        access.kind = ERROR_UNSUPPORTED;
        snprintf(access.reason, sizeof access.reason, "the kernel has no process_vm_readv");
    } else {
        explain_owner(t, &access, "CAP_SYS_PTRACE");
    }
    return access;
}

struct target_access target_try(const struct target *t, enum target_ability ability)
{
    if (t->silent && ability != TARGET_SAMPLE) {
        struct target_access access = { .kind = ERROR_UNSUPPORTED };
        snprintf(
            access.reason, sizeof access.reason,
            "it did not let itself be looked at within %d ms: a file system or its memory does not answer",
            TARGET_PROBE_MS);
        snprintf(access.fix, sizeof access.fix, "look for dead mounts: cat /proc/%d/mounts", (int)t->pid);
        return access;
    }
    switch (ability) {
    case TARGET_SAMPLE:
        return try_sample(t);
    case TARGET_EVENTS:
        return try_events(t);
    case TARGET_MEMORY:
        return try_memory(t);
    case TARGET_ABILITIES:
        break;
    }
    return (struct target_access){ 0 };
}

bool target_require(const struct target *t, enum target_ability ability, struct error *err)
{
    static const char *const does[] = { "sample", "get runtime events of", "read the memory of" };
    assert(ability < TARGET_ABILITIES);
    struct target_access access = target_try(t, ability);
    if (access.ok)
        return true;
    if (!target_is_alive(t)) {
        error_set(err, ERROR_TARGET, "process %d (%s) has ended", (int)t->pid, target_label(t));
        return error_hint(err, "clrperf ps lists the .NET processes");
    }
    error_set(err, access.kind, "cannot %s process %d (%s): %s", does[ability], (int)t->pid, target_label(t),
              access.reason);
    return error_hint(err, "%s", access.fix);
}
