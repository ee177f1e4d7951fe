#include "collect/process_scan.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "collect/proc_file.h"
#include "collect/process_mappings.h"
#include "trace/address_space.h"

enum {
    PATH_BYTES_MAX = 1 << 16,
    SCAN_THREADS_MAX = 1 << 17,
};

/* What a mapping's name says about it; what a file really is turns out when it is opened. */
static enum image_kind scan_kind(struct span path)
{
    if (span_begins(path, "/memfd:doublemapper"))
        return IMAGE_JIT;
    if (span_begins(path, "[vdso]"))
        return IMAGE_VDSO;
    if (path.size == 0 || path.data[0] == '[' || span_begins(path, "//anon") ||
        span_begins(path, "/dev/zero") || span_begins(path, "/anon_hugepage") ||
        span_begins(path, "anon_inode:"))
        return IMAGE_ANON;
    if (span_ends(path, ".dll") || span_ends(path, ".exe") || span_ends(path, ".dll" PROCFS_DELETED))
        return IMAGE_PE;
    return IMAGE_ELF;
}

/* Anonymous memory that is known to hold an assembly: see collect/unpacked_images. */
static bool is_unpacked_image(const struct trace_builder *b, uint32_t process, uint64_t start,
                              uint64_t size_bytes)
{
    const struct trace_mapping *m = &b->trace.mappings.rows[trace_builder_mapping_at(b, process, start)];
    const struct trace_image *image = &b->trace.images.rows[m->image];
    return image->kind == IMAGE_PE && !image->inode && m->start == start && m->end - start == size_bytes;
}

void process_scan_add_mapping(struct trace_builder *b, uint32_t process, uint64_t start, uint64_t size_bytes,
                              uint64_t file_off, struct span path, uint32_t major, uint32_t minor,
                              uint64_t inode, uint64_t time_ns)
{
    enum image_kind kind = scan_kind(path);
    if (kind == IMAGE_ANON && is_unpacked_image(b, process, start, size_bytes))
        return;
    if (kind == IMAGE_ANON || kind == IMAGE_JIT) /* one code heap is like another */
        path = kind == IMAGE_JIT ? span_of("[code heap]", 11) : span_of("[anon]", 6), major = minor = 0,
        inode = 0;
    uint32_t image = trace_builder_image(b, path, kind, major, minor, inode);
    trace_builder_mapping(b, process, start, size_bytes, file_off, image, time_ns);
}

void process_scan_add_memory(struct trace_builder *b, uint32_t process, const struct memory *memory,
                             uint64_t time_ns)
{
    struct buffer path;
    buffer_init(&path, PATH_BYTES_MAX);
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct memory_mapping *m = &memory->mappings[i];
        if (!m->executable)
            continue;
        buffer_clear(&path);
        buffer_string(&path, m->path);
        if (m->deleted)
            buffer_string(&path, PROCFS_DELETED);
        process_scan_add_mapping(b, process, m->start, m->end - m->start, m->file_off, buffer_span(&path), 0,
                                 0, m->inode, time_ns);
    }
    buffer_done(&path);
}

struct maps_scan {
    struct trace_builder *b;
    uint32_t process;
    uint64_t time_ns;
    struct buffer path;
};

static bool add_mapping(void *user, const struct proc_mapping *m)
{
    struct maps_scan *s = user;
    buffer_clear(&s->path);
    buffer_append(&s->path, m->path.data, m->path.size);
    if (m->deleted)
        buffer_string(&s->path, PROCFS_DELETED);
    process_scan_add_mapping(s->b, s->process, m->start, m->end - m->start, m->file_off,
                             buffer_span(&s->path), m->device_major, m->device_minor, m->inode, s->time_ns);
    return true;
}

static void scan_maps(struct trace_builder *b, uint32_t process, uint32_t pid, uint64_t time_ns)
{
    struct maps_scan scan = { .b = b, .process = process, .time_ns = time_ns };
    buffer_init(&scan.path, PATH_BYTES_MAX);
    process_mappings_each((pid_t)pid, MAPPINGS_EXECUTABLE, add_mapping, &scan, NULL);
    buffer_done(&scan.path);
}

static void scan_threads(struct trace_builder *b, uint32_t pid, uint64_t time_ns)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%" PRIu32 "/task", pid);
    DIR *dir = opendir(folder);
    struct buffer name;
    buffer_init(&name, 64);
    size_t count = 0;
    for (struct dirent *entry; dir && count < SCAN_THREADS_MAX && (entry = readdir(dir)); count++) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (tid && proc_file_read_task((pid_t)pid, (pid_t)tid, "comm", &name, NULL) && name.size > 1)
            trace_builder_thread_name(b, pid, tid, span_of(name.data, name.size - 1), time_ns);
    }
    if (dir)
        closedir(dir);
    buffer_done(&name);
}

/* Started after it was first heard of. Start times are known to a tick, and count from boot. */
static bool is_later_process(const struct trace_process *row, uint64_t start_ticks)
{
    if (row->start_ticks || !row->from_ns)
        return row->start_ticks && row->start_ticks != start_ticks;
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    struct timespec boot = { 0 };
    clock_gettime(CLOCK_BOOTTIME, &boot);
    uint64_t up_ns = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec;
    uint64_t heard_ns = row->from_ns + (up_ns - clock_monotonic_ns());
    return start_ticks > heard_ns / tick_ns + 1;
}

/*
 * A program that we saw start keeps the name it was started by: sh, not the dash that a link leads to, which
 * would depend on its living long enough for a look. But one that the kernel cut is made whole.
 */
static bool keeps_name(const struct trace *t, const struct trace_process *row, const struct target *target)
{
    enum { KERNEL_NAME_BYTES = 15 };
    struct span name = trace_string_span(t, row->name);
    bool is_cut = name.size == KERNEL_NAME_BYTES &&
                  strncmp(target_label(target), (const char *)name.data, name.size) == 0;
    return row->from_ns && name.size && !is_cut && target->runtime == RUNTIME_NONE;
}

bool process_scan_identity(struct trace_builder *b, uint32_t process, const struct target *target)
{
    struct trace *t = &b->trace;
    struct trace_process row = t->processes.rows[process];
    if (is_later_process(&row, target->start_ticks))
        return false;
    row.ns_pid = (uint32_t)target->ns_pid;
    row.start_ticks = target->start_ticks;
    if (!keeps_name(t, &row, target))
        row.name = trace_add_string(t, target_label(target));
    row.command_line = target->command_line ? trace_add_string(t, target->command_line) : 0;
    row.container = target->container_id ? trace_add_string(t, target->container_id) : 0;
    row.runtime_version = trace_add_string(t, target_runtime_text(target));
    t->processes.rows[process] = row;
    trace_builder_changed(b, CHANGED_PROCESS, process);
    return true;
}

bool process_scan_has_coreclr(const struct trace *t, uint32_t process)
{
    const char *version = trace_string(t, t->processes.rows[process].runtime_version);
    return version[0] >= '0' && version[0] <= '9'; /* of others it is the name */
}

bool process_scan_maps_coreclr(const struct trace_builder *b, uint32_t process)
{
    static const char name[] = "/libcoreclr.so";
    const struct address_space *space = b->states[process].mappings;
    for (size_t i = 0; i < space->count; i++) {
        uint32_t image = b->trace.mappings.rows[space->ranges[i].mapping].image;
        if (span_ends(trace_string_span(&b->trace, b->trace.images.rows[image].path), name))
            return true;
    }
    return false;
}

bool process_scan_start(struct trace_builder *b, uint32_t process)
{
    struct trace_process *row = &b->trace.processes.rows[process];
    uint64_t start_ticks;
    if (row->to_ns || !proc_file_start_ticks((pid_t)row->pid, &start_ticks, NULL) ||
        is_later_process(row, start_ticks))
        return false;
    if (row->start_ticks != start_ticks)
        trace_builder_changed(b, CHANGED_PROCESS, process);
    row->start_ticks = start_ticks;
    return true;
}

void process_scan_name(struct trace_builder *b, uint32_t process, struct span name)
{
    b->trace.processes.rows[process].name = trace_add_span(&b->trace, name);
    trace_builder_changed(b, CHANGED_PROCESS, process);
}

/* Until more is known of it, which takes a look that comes too late for what it forks. */
static void name_by_main_thread(struct trace_builder *b, uint32_t process, uint32_t pid)
{
    uint32_t thread = trace_builder_find_thread(b, process, pid);
    b->trace.processes.rows[process].name = b->trace.threads.rows[thread].name;
    trace_builder_changed(b, CHANGED_PROCESS, process);
}

uint32_t process_scan_read(struct trace_builder *b, uint32_t pid, uint64_t time_ns)
{
    uint32_t process = trace_builder_process_start(b, pid, time_ns);
    scan_maps(b, process, pid, time_ns);
    scan_threads(b, pid, time_ns);
    name_by_main_thread(b, process, pid);
    return process;
}

/* Whether the number still is that process's. */
static bool is_there(const struct trace_process *row)
{
    uint64_t start_ticks;
    return !row->to_ns && (!row->start_ticks || (proc_file_start_ticks((pid_t)row->pid, &start_ticks, NULL) &&
                                                 start_ticks == row->start_ticks));
}

void process_scan_mappings(struct trace_builder *b, uint32_t process, uint64_t time_ns)
{
    const struct trace_process *row = &b->trace.processes.rows[process];
    if (is_there(row))
        scan_maps(b, process, row->pid, time_ns);
}

void process_scan_again(struct trace_builder *b, uint32_t process, uint64_t time_ns)
{
    uint32_t pid = b->trace.processes.rows[process].pid;
    process_scan_mappings(b, process, time_ns);
    if (is_there(&b->trace.processes.rows[process]))
        scan_threads(b, pid, time_ns);
}

void process_scan_mapping(struct trace_builder *b, uint32_t process, const struct perf_mmap *mmap,
                          uint64_t time_ns)
{
    if (!(mmap->prot & PROT_EXEC))
        return;
    process_scan_add_mapping(b, process, mmap->addr, mmap->size_bytes, mmap->file_off, mmap->path,
                             mmap->major, mmap->minor, mmap->inode, time_ns);
}

bool process_scan_is_root(const struct trace_builder *b, uint32_t mapping)
{
    if (!mapping)
        return false;
    const char *path =
        trace_string(&b->trace, b->trace.images.rows[b->trace.mappings.rows[mapping].image].path);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-", 5) == 0 ||
           strncmp(name, "ld-", 3) == 0 || strncmp(name, "libpthread", 10) == 0;
}
