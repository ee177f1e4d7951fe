#include "collect/process_stacks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/il_offsets.h"
#include "collect/proc_file.h"
#include "collect/thread_wait.h"
#include "collect/unpacked_images.h"
#include "read/procfs.h"
#include "unwind/process_code.h"

enum { WAIT_TEXT_MAX = 8192, NAME_BYTES_MAX = 64, STAT_BYTES_MAX = 4096, IMAGES_MAX = 1 << 16 };

void process_stacks_init(struct process_stacks *stacks, const struct stacks_target *target)
{
    *stacks = (struct process_stacks){ .target = *target, .images = unwind_images_new() };
    stacks->path_count = 1;
    stacks->paths = mem_grow(stacks->paths, &stacks->path_capacity, 1, sizeof *stacks->paths);
    stacks->paths[0] = NULL;
}

static void thread_done(struct stacks_thread *thread)
{
    free(thread->name);
    free(thread->waiting_on);
    free(thread->problem);
    free(thread->stack);
}

void process_stacks_renew(struct process_stacks *stacks)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        thread_done(&stacks->threads[i]);
    stacks->thread_count = 0;
}

void process_stacks_done(struct process_stacks *stacks)
{
    process_stacks_renew(stacks);
    free(stacks->threads);
    code_walk_close(stacks->walk);
    unwind_images_free(stacks->images);
    for (size_t i = 0; i < stacks->path_count; i++)
        free(stacks->paths[i]);
    free(stacks->paths);
}

struct stacks_thread *process_stacks_add(struct process_stacks *stacks, pid_t tid)
{
    stacks->threads = mem_grow(stacks->threads, &stacks->thread_capacity, stacks->thread_count + 1,
                               sizeof *stacks->threads);
    struct stacks_thread *thread = &stacks->threads[stacks->thread_count++];
    *thread = (struct stacks_thread){ .tid = tid, .ns_tid = tid };
    return thread;
}

/* A running process. */

static int compare_tids(const void *a, const void *b)
{
    pid_t x = ((const struct stacks_thread *)a)->tid, y = ((const struct stacks_thread *)b)->tid;
    return (x > y) - (x < y);
}

static bool list_threads(struct process_stacks *stacks, pid_t only_tid, struct error *err)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)stacks->target.pid);
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && stacks->thread_count < STACKS_THREADS_MAX && (entry = readdir(dir));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && (!only_tid || tid == only_tid))
            process_stacks_add(stacks, tid);
    }
    if (dir)
        closedir(dir);
    if (stacks->thread_count)
        qsort(stacks->threads, stacks->thread_count, sizeof *stacks->threads, compare_tids);
    else if (dir && only_tid)
        return error_set(err, ERROR_TARGET, "process %d has no thread %d", (int)stacks->target.pid,
                         (int)only_tid);
    return stacks->thread_count ||
           error_set(err, ERROR_TARGET, "process %d is gone", (int)stacks->target.pid);
}

static void read_state(const struct process_stacks *stacks, struct stacks_thread *thread)
{
    char file[64];
    struct buffer text;
    struct proc_stat stat;
    buffer_init(&text, STAT_BYTES_MAX);
    snprintf(file, sizeof file, "task/%d/stat", (int)thread->tid);
    if (proc_file_read(stacks->target.pid, file, &text, NULL) &&
        procfs_read_stat(buffer_span(&text), &stat, NULL)) {
        thread->state = stat.state;
        thread->name = mem_format("%.*s", (int)stat.name.size, (const char *)stat.name.data);
    }
    buffer_done(&text);
    if (!thread->name)
        thread->name = mem_copy_string("");
}

/* Its number as the process has it itself. False when that is known to be the same, as of all threads then.
 */
static bool read_ns_tid(const struct process_stacks *stacks, struct stacks_thread *thread)
{
    char file[64];
    struct proc_status status;
    struct buffer lines;
    buffer_init(&lines, STAT_BYTES_MAX);
    snprintf(file, sizeof file, "task/%d/status", (int)thread->tid);
    bool known = proc_file_read(stacks->target.pid, file, &lines, NULL) &&
                 procfs_read_status(buffer_span(&lines), &status, NULL);
    if (known)
        thread->ns_tid = status.ns_pid;
    buffer_done(&lines);
    return !known || status.ns_depth > 0;
}

static bool name_fd(void *user, int fd, struct buffer *out)
{
    const struct process_stacks *stacks = user;
    char file[32], target[4096];
    snprintf(file, sizeof file, "fd/%d", fd);
    if (fd < 0 || !proc_file_link(stacks->target.pid, file, target, sizeof target, NULL))
        return false;
    buffer_string(out, target);
    return true;
}

static void describe_wait(struct process_stacks *stacks, struct stacks_thread *thread, bool live)
{
    struct buffer text;
    struct thread_wait_sources sources = { stacks->target.memory, live ? name_fd : NULL, stacks };
    buffer_init(&text, WAIT_TEXT_MAX);
    thread_wait_describe(&thread->registers, &sources, &text);
    thread->waiting_on = mem_format("%.*s", (int)text.size, text.data ? (const char *)text.data : "");
    buffer_done(&text);
}

/* What lies above are the arguments. */
static uint64_t main_stack_end(pid_t pid)
{
    struct proc_stat stat;
    return proc_file_stat(pid, &stat, NULL) ? stat.stack_start : 0;
}

static bool has_ended(const struct process_stacks *stacks, const struct stacks_thread *thread)
{
    struct stacks_thread now = { .tid = thread->tid };
    read_state(stacks, &now);
    free(now.name);
    return now.state == 0 || now.state == 'Z' || now.state == 'X';
}

/* What the kernel says of them, before they are stopped. */
static void read_states(struct process_stacks *stacks)
{
    bool nested = read_ns_tid(stacks, &stacks->threads[0]);
    for (size_t i = 0; i < stacks->thread_count; i++) {
        read_state(stacks, &stacks->threads[i]);
        if (nested && i > 0)
            read_ns_tid(stacks, &stacks->threads[i]);
    }
}

static void keep_stop(struct process_stacks *stacks, struct stacks_thread *thread, struct thread_stop *stop)
{
    if (stop->problem.kind != ERROR_NONE) {
        if (has_ended(stacks, thread)) /* one that is ending is refused like one of others */
            error_set(&stop->problem, ERROR_TARGET, "process %d is gone", (int)stacks->target.pid);
        thread->problem = mem_copy_string(stop->problem.what);
        return;
    }
    thread->registers = stop->registers;
    thread->stopped_ns = stop->stopped_ns;
    thread->stack = mem_alloc(stop->stack.size + 1, 1);
    thread->stack_bytes = stop->stack.size;
    if (stop->stack.size)
        memcpy(thread->stack, stop->stack.data, stop->stack.size);
}

/* Stops them, in parts. Where not even one of the first may be looked at the others are not asked. */
static void stop_threads(struct process_stacks *stacks, struct thread_stopper *stopper,
                         struct thread_stop *stops)
{
    uint64_t stack_end = main_stack_end(stacks->target.pid);
    bool refused = true;
    for (size_t done = 0, end; done < stacks->thread_count; done = end) {
        end = done + thread_stopper_take(stopper, stack_end, stops + done, stacks->thread_count - done);
        for (size_t i = done; i < end; i++) {
            keep_stop(stacks, &stacks->threads[i], &stops[i]);
            refused = refused && stops[i].problem.kind == ERROR_PERMISSION;
        }
        for (size_t i = end; refused && i < stacks->thread_count; i++)
            stops[i].problem = stops[0].problem;
        if (refused)
            return;
    }
}

static void remove_thread(struct process_stacks *stacks, size_t i)
{
    struct stacks_thread *thread = &stacks->threads[i];
    thread_done(thread);
    memmove(thread, thread + 1, (--stacks->thread_count - i) * sizeof *thread);
}

bool process_stacks_take_live(struct process_stacks *stacks, struct thread_stopper *stopper, pid_t only_tid,
                              struct error *err)
{
    process_stacks_renew(stacks);
    if (!list_threads(stacks, only_tid, err))
        return false;
    size_t count = stacks->thread_count, taken = 0, kept = 0;
    struct thread_stop *stops = mem_alloc(count, sizeof *stops);
    for (size_t i = 0; i < count; i++)
        stops[i].tid = stacks->threads[i].tid;
    read_states(stacks);
    stop_threads(stacks, stopper, stops);
    for (size_t i = 0; i < count; i++) {
        taken += stops[i].problem.kind == ERROR_NONE;
        if (stops[i].problem.kind == ERROR_TARGET) /* it ended since it was listed */
            remove_thread(stacks, kept);
        else
            kept++;
    }
    if (taken == 0)
        *err = stops[0].problem;
    free(stops);
    return taken > 0;
}

void process_stacks_describe_waits(struct process_stacks *stacks)
{
    for (size_t i = 0; i < stacks->thread_count; i++) {
        if (stacks->threads[i].problem)
            stacks->threads[i].waiting_on = mem_copy_string("");
        else
            describe_wait(stacks, &stacks->threads[i], true);
    }
}

/* Code. */

/* Of a file with unwind tables; else memory that code is generated into. */
static bool is_image(const struct memory_mapping *m)
{
    return (m->path[0] == '/' && strncmp(m->path, "/memfd:", 7) != 0 && m->path[1] != '/') ||
           strcmp(m->path, "[vdso]") == 0;
}

static bool open_image(void *user, uint32_t image, struct source *out)
{
    const struct process_stacks *stacks = user;
    const char *path = stacks->paths[image];
    if (strcmp(path, "[vdso]") == 0)
        return unwind_vdso(out);
    return stacks->target.files.open && stacks->target.files.open(stacks->target.files.user, path, out);
}

static void close_image(void *user, struct source *file)
{
    const struct process_stacks *stacks = user;
    if (file->fd >= 0)
        stacks->target.files.close(stacks->target.files.user, file);
}

static bool read_memory(void *user, uint64_t addr, void *into, size_t size)
{
    const struct process_stacks *stacks = user;
    if (stacks->walk) /* has the pages that lead to methods already */
        return memory_pages_read(code_walk_types(stacks->walk)->pages, addr, into, size);
    return memory_read(stacks->target.memory, addr, into, size);
}

/* As /proc/PID/maps has it: what has the name of a deleted file now is another one. */
static char *mapped_path(const struct memory_mapping *m)
{
    return mem_format("%s%s", m->path, m->deleted ? PROCFS_DELETED : "");
}

static uint32_t image_number(struct process_stacks *stacks, const char *path)
{
    for (size_t i = stacks->path_count; i-- > 1;)
        if (strcmp(stacks->paths[i], path) == 0)
            return (uint32_t)i;
    if (stacks->path_count == IMAGES_MAX)
        return PROCESS_CODE_NO_IMAGE;
    stacks->paths =
        mem_grow(stacks->paths, &stacks->path_capacity, stacks->path_count + 1, sizeof *stacks->paths);
    stacks->paths[stacks->path_count] = mem_copy_string(path);
    return (uint32_t)stacks->path_count++;
}

static bool take_outline(void *user, const struct found_method *found)
{
    if (found->kind != FOUND_STUB)
        process_code_method(user, found->begin, found->end - found->begin, found->kind == FOUND_DYNAMIC);
    return true;
}

/* Of a stack that was not taken: another one of its thread's. */
static bool find_method(void *user, uint64_t addr)
{
    struct process_stacks *stacks = user;
    if (stacks->walk)
        code_walk_outline_at(stacks->walk, &addr, 1, take_outline, stacks->code);
    return true;
}

/* An executable mapping: of a file, or of what collect/unpacked_images told the trace of. */
static void map_code(struct process_stacks *stacks, struct process_code *code, const struct memory_mapping *m,
                     const struct trace_builder *b, uint32_t process)
{
    uint64_t file_off = m->file_off;
    uint32_t image = PROCESS_CODE_NO_IMAGE;
    const struct trace_mapping *row = &b->trace.mappings.rows[trace_builder_mapping_at(b, process, m->start)];
    const struct trace_image *known = &b->trace.images.rows[row->image];
    if (is_image(m)) {
        AUTO_FREE char *path = mapped_path(m);
        image = image_number(stacks, path);
    } else if (known->kind == IMAGE_PE) {
        image = image_number(stacks, trace_string(&b->trace, known->path));
        file_off = row->file_off;
    }
    process_code_map(code, m->start, m->end - m->start, file_off, image);
}

static struct process_code *open_code(struct process_stacks *stacks, const struct trace_builder *b,
                                      uint32_t process)
{
    struct process_code_access access = {
        .machine = stacks->target.machine,
        .open = open_image,
        .close = close_image,
        .read = read_memory,
        .find_method = stacks->target.is_dump ? find_method : NULL,
        .user = stacks,
    };
    struct process_code *code = process_code_new(stacks->images, &access);
    const struct memory *memory = stacks->target.memory;
    for (size_t i = 0; i < memory->mapping_count; i++) {
        if (memory->mappings[i].executable)
            map_code(stacks, code, &memory->mappings[i], b, process);
    }
    return code;
}

/* Jitted methods. */

struct addr_list {
    uint64_t *items;
    size_t count, capacity;
};

static void add_generated(const struct process_stacks *stacks, struct addr_list *list, uint64_t addr)
{
    const struct memory_mapping *m = memory_mapping_at(stacks->target.memory, addr);
    if (!m || !m->executable || is_image(m))
        return;
    list->items = mem_grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = addr;
}

static int compare_addrs(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Ascending, each once. */
static void sort_out(struct addr_list *list)
{
    if (list->count == 0)
        return;
    qsort(list->items, list->count, sizeof *list->items, compare_addrs);
    size_t kept = 1;
    for (size_t i = 1; i < list->count; i++)
        if (list->items[i] != list->items[kept - 1])
            list->items[kept++] = list->items[i];
    list->count = kept;
}

/* Every word on a stack may return into generated code: which do is known after unwinding, which needs it. */
static void collect_generated(const struct process_stacks *stacks, struct addr_list *list)
{
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const struct stacks_thread *thread = &stacks->threads[i];
        if (thread->problem)
            continue;
        add_generated(stacks, list, thread->registers.general.ip);
        for (size_t at = 0; at + 8 <= thread->stack_bytes; at += 8)
            add_generated(stacks, list, load_u64le(thread->stack + at) - 1);
    }
    sort_out(list);
}

void process_stacks_find_code(struct process_stacks *stacks)
{
    if (stacks->walk)
        code_walk_renew(stacks->walk);
    else
        code_walk_open(stacks->target.memory, &stacks->target.files, &stacks->walk, &stacks->walk_error);
}

void process_stacks_read_tables(struct process_stacks *stacks, const struct memory_mapping *m)
{
    AUTO_FREE char *path = mapped_path(m);
    uint32_t image = is_image(m) ? image_number(stacks, path) : PROCESS_CODE_NO_IMAGE;
    if (image != PROCESS_CODE_NO_IMAGE)
        unwind_images_code(stacks->images, image, m->start, m->file_off, open_image, close_image, stacks);
}

/* What can be jitted code tells the unwinder how to leave it. */
static void outline_methods(struct process_stacks *stacks)
{
    struct addr_list list = { 0 };
    if (!stacks->walk)
        return;
    collect_generated(stacks, &list);
    code_walk_outline_at(stacks->walk, list.items, list.count, take_outline, stacks->code);
    free(list.items);
}

struct method_sink {
    struct trace_builder *b;
    uint32_t process;
    uint64_t time_ns;
};

static bool take_method(void *user, const struct found_method *found)
{
    static const uint8_t tiers[] = {
        TIER_NONE, TIER_0, TIER_0_INSTRUMENTED, TIER_OSR, TIER_1, TIER_OPTIMIZED
    };
    struct method_sink *sink = user;
    struct trace *t = &sink->b->trace;
    bool dynamic = found->kind == FOUND_DYNAMIC;
    if (found->kind == FOUND_STUB || found->name[0] == 0)
        return true;
    struct trace_function function = {
        .name = trace_add_string(t, found->name),
        .module = found->module[0] ? trace_add_string(t, found->module) : 0,
        .kind = dynamic ? CODE_DYNAMIC : CODE_JIT,
    };
    struct trace_code code = {
        .process = sink->process,
        .function = trace_builder_function(sink->b, &function),
        .addr = found->begin,
        .size_bytes = found->end - found->begin,
        .from_ns = sink->time_ns,
        .module_path = found->path[0] ? trace_add_string(t, found->path) : 0,
        .token = dynamic ? 0 : found->token,
        .tier = tiers[found->tier],
        .resolver = RESOLVER_MEMORY,
    };
    trace_builder_code(sink->b, &code);
    return true;
}

/* Stacks. */

struct unwound {
    struct unwind_frame *frames; /* owned */
    size_t count;
    enum unwind_end end;
};

static bool read_word(void *user, uint64_t addr, uint64_t *out)
{
    uint8_t bytes[8];
    if (!read_memory(user, addr, bytes, sizeof bytes))
        return false;
    *out = load_u64le(bytes);
    return true;
}

static struct unwound unwind_thread(struct process_stacks *stacks, const struct stacks_thread *thread)
{
    struct unwind_frame frames[STACKS_FRAMES_MAX];
    struct unwind_sample sample = { .registers = &thread->registers.general,
                                    .stack = span_of(thread->stack, thread->stack_bytes),
                                    .read_word = stacks->target.is_dump ? read_word : NULL,
                                    .user = stacks };
    struct unwind_result result = process_code_unwind(stacks->code, &sample, frames, STACKS_FRAMES_MAX);
    struct unwound unwound = { mem_alloc(result.count + 1, sizeof *frames), result.count, result.end };
    memcpy(unwound.frames, frames, result.count * sizeof *frames);
    return unwound;
}

/* Tells the methods at the addresses of `list`, which is gone then. */
static void tell_methods(struct process_stacks *stacks, struct addr_list *list, struct method_sink *sink)
{
    sort_out(list);
    if (list->count)
        code_walk_list_at(stacks->walk, list->items, list->count, take_method, sink);
    free(list->items);
}

static void name_methods(struct process_stacks *stacks, const struct unwound *unwound,
                         struct method_sink *sink)
{
    struct addr_list list = { 0 };
    for (size_t i = 0; stacks->walk && i < stacks->thread_count; i++)
        for (size_t k = 0; k < unwound[i].count; k++)
            add_generated(stacks, &list, unwound[i].frames[k].ip - !unwound[i].frames[k].exact);
    tell_methods(stacks, &list, sink);
}

static enum stack_end end_of(enum unwind_end end)
{
    return end == UNWIND_END_ROOT ? STACK_WHOLE : end == UNWIND_END_BROKEN ? STACK_BROKEN : STACK_TRUNCATED;
}

static void add_sample(struct process_stacks *stacks, struct stacks_thread *thread,
                       const struct unwound *unwound, struct trace_builder *b, uint64_t time_ns)
{
    uint64_t addrs[STACKS_FRAMES_MAX];
    for (size_t i = 0; i < unwound->count; i++) /* a caller's address follows its call, unless it is exact */
        addrs[i] =
            unwound->frames[i].ip + (i > 0 && (unwound->frames[i].exact || unwound->frames[i].hijacked));
    struct raw_sample raw = {
        .time_ns = time_ns,
        .weight = 1,
        .user = addrs,
        .user_count = unwound->count,
        .pid = (uint32_t)stacks->target.pid,
        .tid = (uint32_t)thread->tid,
        .kind = SAMPLE_CPU,
        .end = end_of(unwound->end),
    };
    struct span name = span_of(thread->name, strlen(thread->name));
    trace_builder_thread_name(b, raw.pid, raw.tid, name, time_ns);
    thread->trace_stack = trace_builder_sample(b, &raw);
}

static bool read_il_map(void *user, unsigned major, uint64_t begin, uint64_t size_bytes, struct il_map *out)
{
    return code_walk_il_map(user, major, begin, size_bytes, out, NULL);
}

/* Which IL the frames of jitted code are at: what lines are told by. */
static void find_il_offsets(struct process_stacks *stacks, struct trace *t, uint32_t process)
{
    if (!stacks->walk)
        return;
    struct il_offsets *offsets = il_offsets_new(t);
    struct il_map_reader maps = { read_il_map, stacks->walk };
    il_offsets_finish(offsets, process, &maps);
    il_offsets_free(offsets);
}

uint32_t process_stacks_add_code(struct process_stacks *stacks, struct trace_builder *b, uint32_t process,
                                 const uint64_t *addrs, size_t count)
{
    struct method_sink sink = { b, process, clock_monotonic_ns() };
    struct addr_list list = { 0 };
    unpacked_images_tell_once(stacks->target.memory, &stacks->target.files, b, process);
    for (size_t i = 0; stacks->walk && i < count; i++)
        add_generated(stacks, &list, addrs[i]);
    tell_methods(stacks, &list, &sink);
    uint32_t first = (uint32_t)b->trace.locations.count;
    for (size_t i = 0; i < count; i++)
        trace_builder_place(b, process, addrs[i], sink.time_ns);
    find_il_offsets(stacks, &b->trace, process);
    return first;
}

void process_stacks_unwind(struct process_stacks *stacks, struct trace_builder *b, uint32_t process)
{
    unpacked_images_tell_once(stacks->target.memory, &stacks->target.files, b, process);
    stacks->code = open_code(stacks, b, process);
    struct method_sink sink = { b, process, clock_monotonic_ns() };
    struct unwound *unwound = mem_alloc(stacks->thread_count + 1, sizeof *unwound);
    outline_methods(stacks);
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (!stacks->threads[i].problem)
            unwound[i] = unwind_thread(stacks, &stacks->threads[i]);
    process_code_free(stacks->code);
    stacks->code = NULL;
    name_methods(stacks, unwound, &sink);
    for (size_t i = 0; i < stacks->thread_count; i++) {
        if (!stacks->threads[i].problem)
            add_sample(stacks, &stacks->threads[i], &unwound[i], b, sink.time_ns + 1 + i);
        free(unwound[i].frames);
    }
    free(unwound);
    find_il_offsets(stacks, &b->trace, process);
}
