#include "collect/process_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/il_offsets.h"
#include "collect/unpacked_images.h"
#include "read/procfs.h"
#include "unwind/process_code.h"

enum { IMAGES_MAX = 1 << 16 };

void process_stacks_init(struct process_stacks *stacks, const struct stacks_target *target)
{
    *stacks = (struct process_stacks){ .target = *target, .images = unwind_images_new() };
    stacks->path_count = 1;
    stacks->paths = mem_grow(stacks->paths, &stacks->path_capacity, 1, sizeof *stacks->paths);
    stacks->paths[0] = NULL;
}

void process_stacks_done(struct process_stacks *stacks)
{
    taken_threads_done(&stacks->threads);
    code_walk_close(stacks->walk);
    unwind_images_free(stacks->images);
    for (size_t i = 0; i < stacks->path_count; i++)
        free(stacks->paths[i]);
    free(stacks->paths);
}

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

/* Addresses in memory that code is generated into, a few of a process's many mappings. */
struct addr_list {
    struct memory_mapping *mappings; /* that memory */
    size_t mapping_count, mapping_capacity;
    uint64_t *items;
    size_t count, capacity;
};

static struct addr_list list_begin(const struct process_stacks *stacks)
{
    const struct memory *memory = stacks->target.memory;
    struct addr_list list = { 0 };
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const struct memory_mapping *m = &memory->mappings[i];
        if (!m->executable || is_image(m))
            continue;
        list.mappings =
            mem_grow(list.mappings, &list.mapping_capacity, list.mapping_count + 1, sizeof *list.mappings);
        list.mappings[list.mapping_count++] = *m;
    }
    return list;
}

static void list_done(struct addr_list *list)
{
    free(list->mappings);
    free(list->items);
}

/* Most words of a stack are far below or above. */
static bool is_generated(const struct addr_list *list, uint64_t addr)
{
    const struct memory generated = { .mappings = list->mappings, .mapping_count = list->mapping_count };
    size_t count = list->mapping_count;
    return count && addr >= list->mappings[0].start && addr < list->mappings[count - 1].end &&
           memory_mapping_at(&generated, addr);
}

static void add_generated(struct addr_list *list, uint64_t addr)
{
    if (!is_generated(list, addr))
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
    for (size_t i = 0; i < stacks->threads.count; i++) {
        const struct taken_thread *thread = &stacks->threads.rows[i];
        if (thread->problem)
            continue;
        add_generated(list, thread->registers.general.ip);
        for (size_t at = 0; at + 8 <= thread->stack_bytes; at += 8)
            add_generated(list, load_u64le(thread->stack + at) - 1);
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
    if (!stacks->walk)
        return;
    struct addr_list list = list_begin(stacks);
    collect_generated(stacks, &list);
    code_walk_outline_at(stacks->walk, list.items, list.count, take_outline, stacks->code);
    list_done(&list);
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
        .type_params = found->type_params[0] ? trace_add_string(t, found->type_params) : 0,
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

static struct unwound unwind_thread(struct process_stacks *stacks, const struct taken_thread *thread)
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
    list_done(list);
}

static void name_methods(struct process_stacks *stacks, const struct unwound *unwound,
                         struct method_sink *sink)
{
    struct addr_list list = list_begin(stacks);
    for (size_t i = 0; stacks->walk && i < stacks->threads.count; i++)
        for (size_t k = 0; k < unwound[i].count; k++)
            add_generated(&list, unwound[i].frames[k].ip - !unwound[i].frames[k].exact);
    tell_methods(stacks, &list, sink);
}

static enum stack_end end_of(enum unwind_end end)
{
    return end == UNWIND_END_ROOT ? STACK_WHOLE : end == UNWIND_END_BROKEN ? STACK_BROKEN : STACK_TRUNCATED;
}

static void add_sample(struct process_stacks *stacks, struct taken_thread *thread,
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
    struct addr_list list = list_begin(stacks);
    unpacked_images_tell_once(stacks->target.memory, &stacks->target.files, b, process);
    for (size_t i = 0; stacks->walk && i < count; i++)
        add_generated(&list, addrs[i]);
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
    struct unwound *unwound = mem_alloc(stacks->threads.count + 1, sizeof *unwound);
    outline_methods(stacks);
    for (size_t i = 0; i < stacks->threads.count; i++)
        if (!stacks->threads.rows[i].problem)
            unwound[i] = unwind_thread(stacks, &stacks->threads.rows[i]);
    process_code_free(stacks->code);
    stacks->code = NULL;
    name_methods(stacks, unwound, &sink);
    for (size_t i = 0; i < stacks->threads.count; i++) {
        if (!stacks->threads.rows[i].problem)
            add_sample(stacks, &stacks->threads.rows[i], &unwound[i], b, sink.time_ns + 1 + i);
        free(unwound[i].frames);
    }
    free(unwound);
    find_il_offsets(stacks, &b->trace, process);
}
