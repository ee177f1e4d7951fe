#include "collect/perf_events.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/memory_thread.h"
#include "base/own.h"
#include "collect/proc_file.h"

enum {
    EVENTS_CPUS_MAX = 4096,
    EVENTS_THREADS_MAX = 1 << 16,
    EVENTS_LIST_PASSES = 16,
    RING_PAGES_MIN = 8,
    FORMAT_LOST = 1 << 4, /* PERF_FORMAT_LOST, from Linux 6.0 on */
};

static int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
}

/* The attributes of each source, in the order in which their events are opened. */
struct source_attrs {
    struct perf_event_attr attr[PERF_EVENT_SOURCES];
    enum perf_event_source source[PERF_EVENT_SOURCES];
    size_t count;
};

static struct perf_event_attr event_attr(const struct perf_events_options *options)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .config = PERF_COUNT_HW_CPU_CYCLES,
        .size = sizeof attr,
        .sample_freq = options->rate_hz,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
        .read_format = FORMAT_LOST,
        .disabled = 1,
        .exclude_idle = 1,
        .exclude_hv = 1,
        .exclude_guest = 1,
        .freq = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(options->ring_pages * (size_t)sysconf(_SC_PAGESIZE) / 2),
        .enable_on_exec = options->on_exec,
    };
    if (options->user_registers) {
        attr.sample_type |= PERF_SAMPLE_REGS_USER;
        attr.sample_regs_user = options->user_registers;
    }
    if (options->user_stack_bytes) {
        attr.sample_type |= PERF_SAMPLE_STACK_USER;
        attr.sample_stack_user = options->user_stack_bytes;
    }
    return attr;
}

static void attrs_add(struct source_attrs *attrs, enum perf_event_source source, struct perf_event_attr attr)
{
    attrs->attr[attrs->count] = attr;
    attrs->source[attrs->count++] = source;
}

/* Of several sources the first tells of processes and mappings, too. */
static struct source_attrs source_attrs_of(const struct perf_events_options *options)
{
    struct source_attrs attrs = { .count = 0 };
    struct perf_event_attr attr = event_attr(options);
    if (options->cpu && options->context_switches)
        attr.sample_type |= PERF_SAMPLE_IDENTIFIER;
    if (options->cpu)
        attrs_add(&attrs, PERF_EVENT_CPU, attr);
    if (!options->cpu && !options->context_switches) { /* to be told of processes and mappings */
        attr.type = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_DUMMY;
        attr.freq = 0;
        attr.sample_period = 1;
        attrs_add(&attrs, PERF_EVENT_CPU, attr);
    }
    if (!options->context_switches)
        return attrs;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    attr.freq = 0;
    attr.sample_period = 1;
    if (options->user_stack_bytes)
        attr.sample_stack_user = options->switch_stack_bytes;
    if (options->cpu)
        attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 0;
    attrs_add(&attrs, PERF_EVENT_SWITCH, attr);
    return attrs;
}

/* What the first source was granted holds for the others. */
static void attrs_follow_first(struct source_attrs *attrs)
{
    for (size_t i = 1; i < attrs->count; i++) {
        attrs->attr[i].read_format = attrs->attr[0].read_format;
        attrs->attr[i].exclude_kernel = attrs->attr[0].exclude_kernel;
        attrs->attr[i].inherit = attrs->attr[0].inherit;
    }
}

/* `flags`: with PERF_FLAG_PID_CGROUP `pid` is a descriptor. */
static bool event_refused(int e, pid_t pid, unsigned long flags, struct error *err)
{
    if (e == ESRCH)
        return error_set(err, ERROR_TARGET, "process %d is gone", (int)pid);
    if (flags & PERF_FLAG_PID_CGROUP)
        error_system(err, e, "the kernel does not let us sample a control group");
    else if (pid > 0)
        error_system(err, e, "the kernel does not let us sample process %d", (int)pid);
    else
        error_system(err, e, "the kernel does not let us sample the whole machine");
    if (e == ENOSYS || e == EOPNOTSUPP || e == ENOENT) {
        err->kind = ERROR_UNSUPPORTED;
        return error_hint(err, "this kernel has no perf events; clrperf doctor says more");
    }
    if (e == EMFILE || e == ENFILE)
        return error_hint(
            err, "it takes a descriptor for each CPU or thread: raise the limit with ulimit -n 65536");
    if (e == EACCES || e == EPERM)
        error_hint(err,
                   "run with sudo, or %s, or give the right: sudo setcap cap_perfmon,cap_sys_ptrace=ep on "
                   "clrperf; clrperf doctor says what else is missing",
                   pid > 0 && !(flags & PERF_FLAG_PID_CGROUP)
                       ? "as the target's own user with: sudo sysctl kernel.perf_event_paranoid=2"
                       : "with: sudo sysctl kernel.perf_event_paranoid=0");
    return false;
}

/* Finds out, by trying on `pid`, what this kernel grants: cycles or the clock, kernel frames or not. */
static bool event_probe(struct perf_events *events, struct perf_event_attr *attr, pid_t pid, int cpu,
                        unsigned long flags, struct error *err)
{
    for (;;) {
        int fd = event_open(attr, pid, cpu, flags);
        if (fd >= 0) {
            close(fd);
            break;
        }
        int e = errno;
        if (attr->type == PERF_TYPE_HARDWARE &&
            (e == ENOENT || e == EOPNOTSUPP || e == ENODEV || e == EINVAL)) {
            attr->type = PERF_TYPE_SOFTWARE;
            attr->config = PERF_COUNT_SW_CPU_CLOCK;
        } else if (e == EINVAL && attr->read_format) {
            attr->read_format = 0;
        } else if ((e == EACCES || e == EPERM) && !attr->exclude_kernel && pid > 0 &&
                   !(flags & PERF_FLAG_PID_CGROUP)) {
            attr->exclude_kernel = 1;
            events->kernel_denied = e;
        } else {
            return event_refused(e, pid, flags, err);
        }
    }
    events->hardware = attr->type == PERF_TYPE_HARDWARE;
    events->kernel = !attr->exclude_kernel;
    events->layout = perf_sample_layout_of(attr);
    return true;
}

static size_t online_cpus(int *cpus, size_t max)
{
    AUTO_STREAM FILE *file = fopen("/sys/devices/system/cpu/online", "re");
    char text[4096];
    size_t count = 0;
    if (!file || !fgets(text, sizeof text, file))
        snprintf(text, sizeof text, "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
    for (char *at = text; *at && count < max;) { /* "0-3,6" */
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu <= last && count < max; cpu++)
            cpus[count++] = (int)cpu;
        at = *end == ',' ? end + 1 : end;
    }
    if (count == 0 && max)
        cpus[count++] = 0;
    return count;
}

static void events_keep(struct perf_events *events, int fd)
{
    events->fds = mem_grow(events->fds, &events->capacity, events->count + 1, sizeof *events->fds);
    events->fds[events->count++] = fd;
}

static bool events_name(struct perf_events *events, int fd, struct error *err)
{
    uint64_t id;
    if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
        return error_system(err, errno, "cannot tell events apart");
    events->cpu_ids = mem_grow(events->cpu_ids, &events->cpu_id_capacity, events->cpu_id_count + 1,
                               sizeof *events->cpu_ids);
    events->cpu_ids[events->cpu_id_count++] = id;
    return true;
}

static int id_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/*
 * A context switch is told to all who sample switches with what was put together for the first of them, also
 * with its id (kernel/events/core.c, do_perf_sw_event: Linux 6.18 does so): beside another recorder a switch
 * can have any id but one of the CPU's events.
 */
enum perf_event_source perf_events_source(const struct perf_events *events, uint64_t sample_id)
{
    if (!events->cpu_id_count)
        return events->first_source;
    return bsearch(&sample_id, events->cpu_ids, events->cpu_id_count, sizeof sample_id, id_compare)
               ? PERF_EVENT_CPU
               : PERF_EVENT_SWITCH;
}

/* The first event of a CPU owns its ring; the others write into it. */
static bool events_to_ring(struct perf_events *events, size_t ring, int fd,
                           const struct perf_events_options *options, struct error *err)
{
    if (!events->rings[ring].page) {
        struct error why;
        events->ring_fds[ring] = fd;
        if (perf_ring_open(&events->rings[ring], fd, options->ring_pages, &why))
            return true;
        events->no_room = why.os_error == EPERM || why.os_error == ENOMEM;
        if (err)
            *err = why;
        return false;
    }
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, events->ring_fds[ring]) == 0)
        return true;
    return error_system(err, errno, "cannot share a ring between events");
}

/* Opens one event of each source on one CPU. One that is unplugged by now, or a thread that is gone, is no
 * failure. */
static bool events_open_sources(struct perf_events *events, struct source_attrs *attrs, pid_t pid, int cpu,
                                size_t ring, unsigned long flags, const struct perf_events_options *options,
                                struct error *err)
{
    for (size_t i = 0; i < attrs->count; i++) {
        int fd = event_open(&attrs->attr[i], pid, cpu, flags);
        if (fd < 0 && (errno == ENODEV || (errno == ESRCH && pid > 0)))
            return true;
        if (fd < 0) {
            int e = errno;
            if (pid > 0 && !flags)
                error_system(err, e, "cannot sample thread %d", (int)pid);
            else
                error_system(err, e, "cannot sample CPU %d", cpu);
            return e == EMFILE ? error_hint(err, "raise the limit of open files: ulimit -n 65536") : false;
        }
        events_keep(events, fd);
        if (attrs->count > 1 && attrs->source[i] == PERF_EVENT_CPU && !events_name(events, fd, err))
            return false;
        if (!events_to_ring(events, ring, fd, options, err))
            return false;
        /* a CPU without the filter tells of all processes, and what comes out of its ring is filtered; the
         * others go on asking the map, so it must be kept up to date */
        if (events->filter.map_fd >= 0)
            process_filter_attach(&events->filter, fd, NULL);
    }
    return true;
}

/* Without a filter what comes is filtered. A command whose children it would learn of late is better followed
 * by inheritance. */
static bool events_filter(struct perf_events *events, int cpu, const struct perf_events_options *options,
                          struct error *err)
{
    bool filtered = process_filter_open(&events->filter, err);
    for (size_t i = 0; filtered && i < options->pid_count; i++)
        process_filter_add(&events->filter, (uint32_t)options->pids[i]);
    filtered = filtered && process_births_open(&events->births, &events->filter, cpu, err);
    return filtered || !options->on_exec;
}

static bool events_open_system_wide(struct perf_events *events, struct source_attrs *attrs, const int *cpus,
                                    const struct perf_events_options *options, struct error *err)
{
    bool by_cgroup = options->cgroup_fd >= 0;
    pid_t pid = by_cgroup ? options->cgroup_fd : -1;
    unsigned long flags = by_cgroup ? PERF_FLAG_PID_CGROUP : 0;
    if (!event_probe(events, &attrs->attr[0], pid, cpus[0], flags, err))
        return false;
    attrs_follow_first(attrs);
    events->system_wide = true;
    if (options->pids && !events_filter(events, cpus[0], options, err))
        return false;
    for (size_t i = 0; i < events->ring_count; i++)
        if (!events_open_sources(events, attrs, pid, cpus[i], i, flags, options, err))
            return false;
    return true;
}

/* A thread that is gone is no failure: its children inherited. */
static bool events_open_thread(struct perf_events *events, struct source_attrs *attrs, pid_t tid,
                               const int *cpus, const struct perf_events_options *options, struct error *err)
{
    for (size_t i = 0; i < events->ring_count; i++)
        if (!events_open_sources(events, attrs, tid, cpus[i], i, 0, options, err))
            return false;
    return true;
}

/* Opens every thread of a process; lists again until a pass finds no new one. */
static bool events_open_process(struct perf_events *events, struct source_attrs *attrs, pid_t pid,
                                const int *cpus, const struct perf_events_options *options, struct error *err)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    AUTO_FREE pid_t *known = NULL;
    size_t count = 0, capacity = 0;
    for (unsigned pass = 0; pass < EVENTS_LIST_PASSES; pass++) {
        size_t before = count;
        DIR *dir = opendir(folder);
        if (!dir)
            break;
        bool ok = true;
        for (struct dirent *entry; ok && count < EVENTS_THREADS_MAX && (entry = readdir(dir));) {
            pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
            bool seen = tid <= 0;
            for (size_t i = 0; i < count && !seen; i++)
                seen = known[i] == tid;
            if (seen)
                continue;
            known = mem_grow(known, &capacity, count + 1, sizeof *known);
            known[count++] = tid;
            ok = events_open_thread(events, attrs, tid, cpus, options, err);
        }
        closedir(dir);
        if (!ok)
            return false;
        if (count == before)
            break;
    }
    return count || error_set(err, ERROR_TARGET, "process %d is gone", (int)pid);
}

static bool events_open_tasks(struct perf_events *events, struct source_attrs *attrs, const int *cpus,
                              const struct perf_events_options *options, struct error *err)
{
    attrs->attr[0].inherit = 1;
    if (!event_probe(events, &attrs->attr[0], memory_thread_of(options->pids[0]), cpus[0], 0, err))
        return false;
    attrs_follow_first(attrs);
    for (size_t i = 0; i < options->pid_count; i++)
        if (!events_open_process(events, attrs, options->pids[i], cpus, options, err))
            return false;
    return true;
}

/* Threads times CPUs descriptors can be many. */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Fails with out->no_room where a ring was not given, and a smaller one may be. */
static bool events_open(const struct perf_events_options *options, struct perf_events *out, struct error *err)
{
    int cpus[EVENTS_CPUS_MAX] = { 0 };
    struct perf_events events = { .filter = { -1, -1 }, .births = { -1, -1 } };
    events.ring_count = online_cpus(cpus, ARRAY_LEN(cpus));
    events.rings = mem_alloc(events.ring_count, sizeof *events.rings);
    events.ring_fds = mem_alloc(events.ring_count, sizeof *events.ring_fds);
    events.period_ns = 1000000000u / options->rate_hz;
    int64_t frames_max;
    bool told = proc_file_number("/proc/sys/kernel/perf_event_max_stack", &frames_max) && frames_max > 0;
    events.frames_max = told ? (size_t)frames_max : PERF_MAX_STACK_DEPTH;
    raise_open_files();

    struct source_attrs attrs = source_attrs_of(options);
    events.first_source = attrs.source[0];
    bool ok = events_open_system_wide(&events, &attrs, cpus, options, err);
    if (!ok && options->pids && options->cgroup_fd < 0 && !events.count) {
        attrs = source_attrs_of(options);
        events.system_wide = false;
        process_filter_close(&events.filter);
        ok = events_open_tasks(&events, &attrs, cpus, options, err);
    }
    if (events.cpu_id_count)
        qsort(events.cpu_ids, events.cpu_id_count, sizeof *events.cpu_ids, id_compare);
    bool no_room = events.no_room;
    if (!ok) {
        perf_events_close(&events);
        events.no_room = no_room;
    }
    *out = events;
    return ok;
}

bool perf_events_open(const struct perf_events_options *options, struct perf_events *out, struct error *err)
{
    struct perf_events_options granted = *options;
    /* All at one size: where the first is larger the last may be none at all. */
    while (!events_open(&granted, out, err)) {
        if (!out->no_room || granted.ring_pages / 2 < RING_PAGES_MIN)
            return false;
        granted.ring_pages /= 2;
    }
    out->ring_bytes = granted.ring_pages * (size_t)sysconf(_SC_PAGESIZE);
    return true;
}

void perf_events_close(struct perf_events *events)
{
    for (size_t i = 0; i < events->ring_count; i++)
        perf_ring_close(&events->rings[i]);
    for (size_t i = 0; i < events->count; i++)
        close(events->fds[i]);
    process_births_close(&events->births);
    process_filter_close(&events->filter);
    free(events->fds);
    free(events->rings);
    free(events->ring_fds);
    free(events->cpu_ids);
    *events = (struct perf_events){ .filter = { -1, -1 }, .births = { -1, -1 } };
}

bool perf_events_enable(const struct perf_events *events, struct error *err)
{
    for (size_t i = 0; i < events->count; i++)
        if (ioctl(events->fds[i], PERF_EVENT_IOC_ENABLE, 0) < 0)
            return error_system(err, errno, "cannot start sampling");
    return true;
}

void perf_events_disable(const struct perf_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        ioctl(events->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

bool perf_events_lost(const struct perf_events *events, uint64_t *out_lost)
{
    if (!(events->layout.read_format & FORMAT_LOST))
        return false;
    uint64_t lost = 0;
    for (size_t i = 0; i < events->count; i++) {
        uint64_t values[2]; /* value, lost: with no other read format asked for */
        if (read(events->fds[i], values, sizeof values) != sizeof values)
            return false;
        lost += values[1];
    }
    *out_lost = lost;
    return true;
}
