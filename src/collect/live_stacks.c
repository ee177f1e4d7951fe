#include "collect/live_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/process_scan.h"
#include "trace/address_space.h"

enum {
    STACKS_PROCESSES_MAX = 4096,
    STACKS_TOPS = 1 << 12,
    STACKS_SPARE_BYTES = 512, /* above a stack's first frame: rules look there */
};

#define STACKS_IMAGE_BYTES_MAX (UINT64_C(4) << 30)

/* One process that had a sample. */
struct stacks_process {
    struct live_stacks *stacks;
    struct process_code *code;
    uint32_t process; /* row of the trace */
};

/* Where a thread's stack begins. */
struct stack_top {
    uint32_t tid;
    uint64_t addr;
};

struct live_stacks {
    struct trace_builder *b;
    const struct target_files *files;
    struct memory_names *memory;
    struct unwind_images *images;
    struct stacks_process **processes; /* by row of the trace */
    size_t capacity;
    struct stack_top tops[STACKS_TOPS]; /* by tid; a later thread takes the place */
    uint64_t time_ns;                   /* of the sample */
    uint64_t found[UNWIND_FOUND_KINDS];
    struct unwind_frame frames[LIVE_STACK_FRAMES_MAX];
    uint64_t ips[LIVE_STACK_FRAMES_MAX];
    bool exact[LIVE_STACK_FRAMES_MAX];
};

/* How process_code reaches the process. */

static bool open_image(void *user, uint32_t image, struct source *out)
{
    const struct stacks_process *p = user;
    const struct trace *t = &p->stacks->b->trace;
    if (t->images.rows[image].kind == IMAGE_VDSO)
        return unwind_vdso(out);
    int fd = target_files_open(p->stacks->files, p->process, trace_string(t, t->images.rows[image].path));
    if (fd < 0)
        return false;
    if (source_over_fd(fd, 0, STACKS_IMAGE_BYTES_MAX, out, NULL))
        return true;
    close(fd);
    return false;
}

static void close_image(void *user, struct source *file)
{
    (void)user;
    if (file->fd >= 0)
        close(file->fd);
}

static bool read_process(void *user, uint64_t addr, void *into, size_t size)
{
    const struct stacks_process *p = user;
    return memory_names_read(p->stacks->memory, p->process, addr, into, size);
}

static void tell_range(const struct stacks_process *p, const struct address_range *range)
{
    const struct trace *t = &p->stacks->b->trace;
    const struct trace_mapping *row = &t->mappings.rows[range->mapping];
    uint8_t kind = t->images.rows[row->image].kind;
    bool has_file = kind != IMAGE_JIT && kind != IMAGE_ANON;
    process_code_map(p->code, range->start, range->end - range->start,
                     row->file_off + (range->start - row->start),
                     has_file ? row->image : PROCESS_CODE_NO_IMAGE);
}

static void tell_ranges(const struct stacks_process *p)
{
    const struct address_space *space = p->stacks->b->states[p->process].mappings;
    for (size_t i = 0; i < space->count; i++)
        tell_range(p, &space->ranges[i]);
}

static void refresh_mappings(void *user)
{
    const struct stacks_process *p = user;
    process_scan_mappings(p->stacks->b, p->process);
    tell_ranges(p);
}

static bool find_method(void *user, uint64_t addr)
{
    const struct stacks_process *p = user;
    struct method_place method; /* of which live_stacks_method() is told */
    if (!memory_names_find(p->stacks->memory, p->process, addr, p->stacks->time_ns, &method))
        live_stacks_mapped(p->stacks, p->process, addr);
    return memory_names_knows(p->stacks->memory, p->process);
}

/* Processes. */

static struct stacks_process *process_add(struct live_stacks *stacks, uint32_t process)
{
    struct stacks_process *p = mem_alloc(1, sizeof *p);
    struct process_code_access access = {
        .machine = machine_own(),
        .open = open_image,
        .close = close_image,
        .read = read_process,
        .refresh = refresh_mappings,
        .find_method = find_method,
        .user = p,
    };
    p->stacks = stacks;
    p->process = process;
    p->code = process_code_new(stacks->images, &access);
    tell_ranges(p);
    return stacks->processes[process] = p;
}

static struct stacks_process *process_get(struct live_stacks *stacks, uint32_t process)
{
    if (!process || process >= STACKS_PROCESSES_MAX)
        return NULL;
    size_t known = stacks->capacity;
    stacks->processes =
        mem_grow(stacks->processes, &stacks->capacity, process + 1, sizeof *stacks->processes);
    if (stacks->capacity > known)
        memset(stacks->processes + known, 0, (stacks->capacity - known) * sizeof *stacks->processes);
    return stacks->processes[process] ? stacks->processes[process] : process_add(stacks, process);
}

void live_stacks_method(struct live_stacks *stacks, uint32_t process, const struct method_place *method,
                        bool ends)
{
    struct stacks_process *p = process < stacks->capacity ? stacks->processes[process] : NULL;
    if (!p)
        return; /* its methods are found when a stack leads there */
    if (ends)
        process_code_method_end(p->code, method->addr);
    else
        process_code_method(p->code, method->addr, method->size_bytes, method->fleeting);
}

struct live_stacks *live_stacks_new(struct trace_builder *b, const struct target_files *files,
                                    struct memory_names *memory)
{
    struct live_stacks *stacks = mem_alloc(1, sizeof *stacks);
    stacks->b = b;
    stacks->files = files;
    stacks->memory = memory;
    stacks->images = unwind_images_new();
    return stacks;
}

void live_stacks_free(struct live_stacks *stacks)
{
    if (!stacks)
        return;
    for (size_t i = 0; i < stacks->capacity; i++)
        if (stacks->processes[i]) {
            process_code_free(stacks->processes[i]->code);
            free(stacks->processes[i]);
        }
    free(stacks->processes);
    unwind_images_free(stacks->images);
    free(stacks);
}

void live_stacks_mapped(struct live_stacks *stacks, uint32_t process, uint64_t addr)
{
    struct stacks_process *p = process < stacks->capacity ? stacks->processes[process] : NULL;
    const struct address_range *range =
        p ? address_space_find(stacks->b->states[process].mappings, addr) : NULL;
    if (range)
        tell_range(p, range);
}

/* Samples. */

static void top_learn(struct live_stacks *stacks, uint32_t tid, const struct unwind_result *result)
{
    if (result->end == UNWIND_END_ROOT && result->count &&
        stacks->frames[result->count - 1].found < UNWIND_FOUND_KERNEL)
        stacks->tops[tid % STACKS_TOPS] = (struct stack_top){ tid, result->end_sp };
}

uint64_t live_stacks_need(const struct live_stacks *stacks, const struct perf_sample *sample)
{
    struct unwind_registers registers;
    const struct stack_top *top = &stacks->tops[sample->who.tid % STACKS_TOPS];
    if (top->tid != sample->who.tid ||
        !machine_registers_of_perf(machine_own(), sample->user_regs, &registers))
        return UINT64_MAX;
    uint64_t sp = registers.sp;
    return sp < top->addr ? top->addr - sp + STACKS_SPARE_BYTES : UINT64_MAX;
}

bool live_stacks_unwind(struct live_stacks *stacks, uint32_t process, const struct perf_sample *sample,
                        const uint64_t *kernel_chain, size_t kernel_count, struct live_stack *out)
{
    static const enum stack_end ends[] = {
        [UNWIND_END_ROOT] = STACK_WHOLE,
        [UNWIND_END_CUT] = STACK_TRUNCATED,
        [UNWIND_END_DEPTH] = STACK_TRUNCATED,
        [UNWIND_END_BROKEN] = STACK_BROKEN,
    };
    struct unwind_registers registers;
    struct stacks_process *p = process_get(stacks, process);
    if (!p || !machine_registers_of_perf(machine_own(), sample->user_regs, &registers))
        return false;
    stacks->time_ns = sample->who.time_ns;
    struct unwind_sample input = { &registers, sample->user_stack, kernel_chain, kernel_count };
    struct unwind_result result = process_code_unwind(p->code, &input, stacks->frames, LIVE_STACK_FRAMES_MAX);
    top_learn(stacks, sample->who.tid, &result);
    for (size_t i = 0; i < result.count; i++) {
        stacks->ips[i] = stacks->frames[i].ip;
        stacks->exact[i] = stacks->frames[i].exact || stacks->frames[i].hijacked;
        stacks->found[stacks->frames[i].found]++;
    }
    *out = (struct live_stack){ stacks->ips, stacks->exact, result.count, ends[result.end] };
    return true;
}

const uint64_t *live_stacks_found(const struct live_stacks *stacks)
{
    return stacks->found;
}
