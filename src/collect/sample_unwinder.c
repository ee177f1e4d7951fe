#include "collect/sample_unwinder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "read/elf.h"
#include "trace/address_space.h"
#include "trace/facts.h"

enum {
    STACKS_PROCESSES_MAX = 4096, /* at a time */
    STACKS_SWEEP = 16,           /* new ones, until those that ended are looked for */
    STACKS_TOPS = 1 << 12,
    STACKS_SPARE_BYTES = 512, /* above a stack's first frame: rules look there */
    STACKS_LATER_BYTES = 4096,
    STACKS_LATER_MAX = 64,    /* reads of so many bytes, of one stack */
    STACKS_LATER_MS = 500,    /* after a sample its thread's memory still tells of it, or does not */
    STACKS_PRESSED_MS = 2000, /* from a stack on that was read so */
    STACKS_TRIED_MIN = 64,
    STACKS_WHOLE_PART = 8, /* of those tried: with less it is no use to hurry */
};

#define STACKS_IMAGE_BYTES_MAX (UINT64_C(4) << 30)

/* One process that had a sample. */
struct stacks_process {
    struct sample_unwinder *unwinder;
    struct process_code *code;
    uint32_t process; /* row of the trace */
};

/* Where a thread's stack begins. */
struct stack_top {
    uint32_t tid;
    uint64_t addr;
};

/* A piece of a stack, read after its sample. */
struct later_piece {
    uint32_t process;
    uint64_t start;
    unsigned reads; /* of this stack */
    bool is_there;
    uint8_t bytes[STACKS_LATER_BYTES];
};

struct sample_unwinder {
    struct trace_builder *b;
    struct sample_sources sources;
    struct unwind_images *images;
    struct stacks_process **processes;  /* by row of the trace */
    size_t capacity, count, sweep_at;   /* count: those that are there; at sweep_at the ended ones go */
    struct stack_top tops[STACKS_TOPS]; /* by tid; a later thread takes the place */
    struct later_piece later;
    uint64_t pressed_until_ns;
    unsigned later_tried, later_whole; /* stacks that were read so, and that it completed */
    uint64_t time_ns;                  /* of the sample */
    uint64_t found[SAMPLE_KINDS][UNWIND_FOUND_KINDS];
    struct unwind_frame frames[UNWOUND_FRAMES_MAX];
    uint64_t ips[UNWOUND_FRAMES_MAX];
    bool exact[UNWOUND_FRAMES_MAX];
};

/* How process_code reaches the process. */

/* Whether a file is the one that was mapped, as far as the trace knows of that. */
static bool is_that_build(const struct trace_image *image, const struct trace *t, const struct source *file)
{
    uint8_t id[ELF_BUILD_ID_MAX];
    char hex[2 * ELF_BUILD_ID_MAX + 1] = "";
    size_t size;
    struct elf elf;
    const char *recorded = trace_string(t, image->build_id);
    if (!recorded[0] || image->kind != IMAGE_ELF || !elf_open(file, &elf, NULL))
        return true;
    bool known = elf_build_id(&elf, id, &size);
    elf_done(&elf);
    for (size_t i = 0; known && i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    return strncmp(hex, recorded, strlen(hex)) == 0; /* perf fills up short ones */
}

static bool open_image(void *user, uint32_t image, struct source *out)
{
    const struct stacks_process *p = user;
    const struct sample_sources *sources = &p->unwinder->sources;
    const struct trace *t = &p->unwinder->b->trace;
    const struct trace_image *row = &t->images.rows[image];
    if (row->kind == IMAGE_VDSO)
        return sources->own_kernel && unwind_vdso(out);
    AUTO_FD int fd = sources->open(sources->user, p->process, trace_string(t, row->path));
    if (fd < 0 || !source_over_fd(fd, 0, STACKS_IMAGE_BYTES_MAX, out, NULL) || !is_that_build(row, t, out))
        return false;
    take_fd(&fd);
    return true;
}

static void close_image(void *user, struct source *file)
{
    (void)user;
    if (file->fd >= 0)
        close(file->fd);
}

static bool range_has_file(const struct trace_builder *b, const struct address_range *range)
{
    uint8_t kind = b->trace.images.rows[b->trace.mappings.rows[range->mapping].image].kind;
    return kind != IMAGE_JIT && kind != IMAGE_ANON;
}

/* Out of the file that was mapped there. What is behind its end is zero. */
static bool read_file(void *user, uint64_t addr, void *into, size_t size)
{
    const struct stacks_process *p = user;
    const struct trace_builder *b = p->unwinder->b;
    const struct address_range *range = address_space_find(b->states[p->process].mappings, addr);
    struct source file;
    if (!range || !range_has_file(b, range) ||
        !open_image(user, b->trace.mappings.rows[range->mapping].image, &file))
        return false;
    const struct trace_mapping *row = &b->trace.mappings.rows[range->mapping];
    uint64_t file_off = row->file_off + (addr - row->start);
    size_t there = file_off >= file.size         ? 0
                   : size < file.size - file_off ? size
                                                 : (size_t)(file.size - file_off);
    memset((uint8_t *)into + there, 0, size - there);
    bool ok = there && source_read(&file, file_off, into, there, NULL);
    close_image(user, &file);
    return ok;
}

static bool read_process(void *user, uint64_t addr, void *into, size_t size)
{
    const struct stacks_process *p = user;
    const struct sample_sources *sources = &p->unwinder->sources;
    return (sources->read &&
            sources->read(sources->user, p->process, p->unwinder->time_ns, addr, into, size)) ||
           read_file(user, addr, into, size);
}

static void follow_method(void *user, uint64_t begin)
{
    const struct stacks_process *p = user;
    const struct sample_sources *sources = &p->unwinder->sources;
    sources->follow_method(sources->user, p->process, p->unwinder->time_ns, begin);
}

static void tell_range(const struct stacks_process *p, const struct address_range *range)
{
    const struct trace_mapping *row = &p->unwinder->b->trace.mappings.rows[range->mapping];
    bool has_file = range_has_file(p->unwinder->b, range);
    process_code_map(p->code, range->start, range->end - range->start,
                     row->file_off + (range->start - row->start),
                     has_file ? row->image : PROCESS_CODE_NO_IMAGE);
}

static void tell_ranges(const struct stacks_process *p)
{
    const struct address_space *space = p->unwinder->b->states[p->process].mappings;
    for (size_t i = 0; i < space->count; i++)
        tell_range(p, &space->ranges[i]);
}

static void refresh_mappings(void *user)
{
    const struct stacks_process *p = user;
    p->unwinder->sources.refresh(p->unwinder->sources.user, p->process);
    tell_ranges(p);
}

static bool find_method(void *user, uint64_t addr)
{
    const struct stacks_process *p = user;
    const struct sample_sources *sources = &p->unwinder->sources;
    bool asked = sources->find_method(sources->user, p->process, addr, p->unwinder->time_ns);
    sample_unwinder_mapped(p->unwinder, p->process, addr); /* an image may have been found there */
    return asked;
}

/* Processes. */

static struct stacks_process *process_add(struct sample_unwinder *unwinder, uint32_t process)
{
    struct stacks_process *p = mem_alloc(1, sizeof *p);
    struct process_code_access access = {
        .machine = unwinder->sources.machine,
        .open = open_image,
        .close = close_image,
        .read = read_process,
        .follow_method = unwinder->sources.follow_method ? follow_method : NULL,
        .refresh = unwinder->sources.refresh ? refresh_mappings : NULL,
        .find_method = unwinder->sources.find_method ? find_method : NULL,
        .user = p,
    };
    p->unwinder = unwinder;
    p->process = process;
    p->code = process_code_new(unwinder->images, &access);
    tell_ranges(p);
    unwinder->count++;
    return unwinder->processes[process] = p;
}

static void process_remove(struct sample_unwinder *unwinder, size_t process)
{
    process_code_free(unwinder->processes[process]->code);
    free(unwinder->processes[process]);
    unwinder->processes[process] = NULL;
    unwinder->count--;
}

/* One of which a sample comes nevertheless is made anew. */
static void remove_ended(struct sample_unwinder *unwinder)
{
    for (size_t i = 0; i < unwinder->capacity; i++)
        if (unwinder->processes[i] && unwinder->b->trace.processes.rows[i].to_ns)
            process_remove(unwinder, i);
    unwinder->sweep_at = unwinder->count + STACKS_SWEEP;
}

static struct stacks_process *process_get(struct sample_unwinder *unwinder, uint32_t process)
{
    if (process && process < unwinder->capacity && unwinder->processes[process])
        return unwinder->processes[process];
    if (unwinder->count >= unwinder->sweep_at)
        remove_ended(unwinder);
    if (!process || unwinder->count >= STACKS_PROCESSES_MAX)
        return NULL;
    unwinder->processes =
        mem_grow_zeroed(unwinder->processes, &unwinder->capacity, process + 1, sizeof *unwinder->processes);
    return process_add(unwinder, process);
}

void sample_unwinder_method(struct sample_unwinder *unwinder, uint32_t process,
                            const struct method_place *method, bool ends)
{
    struct stacks_process *p = process < unwinder->capacity ? unwinder->processes[process] : NULL;
    if (!p)
        return; /* its methods are found when a stack leads there */
    if (ends)
        process_code_method_end(p->code, method->addr);
    else
        process_code_method(p->code, method->addr, method->size_bytes, method->fleeting);
}

struct sample_unwinder *sample_unwinder_new(struct trace_builder *b, const struct sample_sources *sources)
{
    struct sample_unwinder *unwinder = mem_alloc(1, sizeof *unwinder);
    unwinder->b = b;
    unwinder->sources = *sources;
    unwinder->images = unwind_images_new();
    return unwinder;
}

void sample_unwinder_free(struct sample_unwinder *unwinder)
{
    if (!unwinder)
        return;
    for (size_t i = 0; i < unwinder->capacity; i++)
        if (unwinder->processes[i])
            process_remove(unwinder, i);
    free(unwinder->processes);
    unwind_images_free(unwinder->images);
    free(unwinder);
}

void sample_unwinder_mapped(struct sample_unwinder *unwinder, uint32_t process, uint64_t addr)
{
    struct stacks_process *p = process < unwinder->capacity ? unwinder->processes[process] : NULL;
    const struct address_range *range =
        p ? address_space_find(unwinder->b->states[process].mappings, addr) : NULL;
    if (range)
        tell_range(p, range);
}

/* Samples. */

/* 0 when it is not known. */
static uint64_t top_of(const struct sample_unwinder *unwinder, uint32_t tid)
{
    const struct stack_top *top = &unwinder->tops[tid % STACKS_TOPS];
    return top->tid == tid ? top->addr : 0;
}

/* A top that was learned from what looked like a root, and that a stack goes beyond, is forgotten. */
static void top_learn(struct sample_unwinder *unwinder, uint32_t tid, const struct unwind_result *result)
{
    struct stack_top *top = &unwinder->tops[tid % STACKS_TOPS];
    if (result->end == UNWIND_END_ROOT && result->count &&
        unwinder->frames[result->count - 1].found < UNWIND_FOUND_KERNEL)
        *top = (struct stack_top){ tid, result->end_sp };
    else if (result->end == UNWIND_END_CUT && top->tid == tid)
        *top = (struct stack_top){ 0 };
}

/* What the sample has no bytes for, out of the memory of its process. */
static bool read_later(void *user, uint64_t addr, uint64_t *out)
{
    struct sample_unwinder *unwinder = user;
    const struct sample_sources *sources = &unwinder->sources;
    struct later_piece *piece = &unwinder->later;
    uint64_t start = addr - addr % STACKS_LATER_BYTES, off = addr - start;
    if (off > STACKS_LATER_BYTES - sizeof *out)
        return false;
    if (!piece->reads || piece->start != start) {
        uint64_t until_ns = unwinder->time_ns + STACKS_LATER_MS * UINT64_C(1000000);
        if (piece->reads == STACKS_LATER_MAX || clock_monotonic_ns() > until_ns)
            return false;
        piece->reads++;
        piece->start = start;
        piece->is_there = sources->read(sources->user, piece->process, unwinder->time_ns, start, piece->bytes,
                                        sizeof piece->bytes);
    }
    if (!piece->is_there)
        return false;
    *out = load_u64le(piece->bytes + off);
    return true;
}

/* A stack was read further in memory. */
static void later_learn(struct sample_unwinder *unwinder, bool is_whole)
{
    if (unwinder->later_tried >= 2 * STACKS_TRIED_MIN) { /* what was long ago counts less */
        unwinder->later_tried /= 2;
        unwinder->later_whole /= 2;
    }
    unwinder->later_tried++;
    unwinder->later_whole += is_whole;
    unwinder->pressed_until_ns = unwinder->time_ns + STACKS_PRESSED_MS * UINT64_C(1000000);
}

bool sample_unwinder_is_pressed(const struct sample_unwinder *unwinder)
{
    bool helps = unwinder->later_tried < STACKS_TRIED_MIN ||
                 STACKS_WHOLE_PART * unwinder->later_whole >= unwinder->later_tried;
    return unwinder->pressed_until_ns && helps && clock_monotonic_ns() < unwinder->pressed_until_ns;
}

static bool registers_of(const struct sample_unwinder *unwinder, const struct perf_sample *sample,
                         struct unwind_registers *out)
{
    return machine_registers_of_perf(unwinder->sources.machine, unwinder->sources.registers,
                                     sample->user_regs, out);
}

uint64_t sample_unwinder_need(const struct sample_unwinder *unwinder, const struct perf_sample *sample)
{
    struct unwind_registers registers;
    uint64_t top = top_of(unwinder, sample->who.tid);
    if (!top || !registers_of(unwinder, sample, &registers))
        return UINT64_MAX;
    return registers.sp < top ? top - registers.sp + STACKS_SPARE_BYTES : UINT64_MAX;
}

/* In generated code, where no table led to the caller: a stub, or a method that is gone. */
static bool is_strange_leaf(const struct sample_unwinder *unwinder, uint32_t process, size_t count)
{
    uint8_t found = count > 1 ? unwinder->frames[1].found : UNWIND_FOUND_LEAF;
    if (found != UNWIND_FOUND_STACK_TOP && found != UNWIND_FOUND_FRAME_POINTER &&
        found != UNWIND_FOUND_KERNEL)
        return false;
    const struct address_range *range =
        address_space_find(unwinder->b->states[process].mappings, unwinder->ips[0]);
    return range && !range_has_file(unwinder->b, range);
}

bool sample_unwinder_run(struct sample_unwinder *unwinder, uint32_t process, enum sample_kind kind,
                         const struct perf_sample *sample, const uint64_t *kernel_chain, size_t kernel_count,
                         struct unwound_stack *out)
{
    static const enum stack_end ends[] = {
        [UNWIND_END_ROOT] = STACK_WHOLE,
        [UNWIND_END_CUT] = STACK_TRUNCATED,
        [UNWIND_END_DEPTH] = STACK_TRUNCATED,
        [UNWIND_END_BROKEN] = STACK_BROKEN,
    };
    struct unwind_registers registers;
    struct stacks_process *p = process_get(unwinder, process);
    if (!p || !registers_of(unwinder, sample, &registers))
        return false;
    unwinder->time_ns = sample->who.time_ns;
    unwinder->later.process = process;
    unwinder->later.reads = 0;
    struct unwind_sample input = {
        .registers = &registers,
        .stack = sample->user_stack,
        .kernel_chain = kernel_chain,
        .kernel_count = kernel_count,
        .read_later = unwinder->sources.read ? read_later : NULL,
        .root_sp = top_of(unwinder, sample->who.tid),
        .user = unwinder,
    };
    struct unwind_result result = process_code_unwind(p->code, &input, unwinder->frames, UNWOUND_FRAMES_MAX);
    if (unwinder->later.reads)
        later_learn(unwinder, result.end == UNWIND_END_ROOT);
    top_learn(unwinder, sample->who.tid, &result);
    for (size_t i = 0; i < result.count; i++) {
        unwinder->ips[i] = unwinder->frames[i].ip;
        unwinder->exact[i] = unwinder->frames[i].exact || unwinder->frames[i].hijacked;
        unwinder->found[kind][unwinder->frames[i].found]++;
    }
    *out = (struct unwound_stack){
        .ips = unwinder->ips,
        .exact = unwinder->exact,
        .count = result.count,
        .end = ends[result.end],
        .leaf_is_strange = is_strange_leaf(unwinder, process, result.count),
    };
    return true;
}

static void tell_found(struct trace *t, const char *fact, const uint64_t found[UNWIND_FOUND_KINDS])
{
    static const char *const ways[UNWIND_FOUND_KINDS] = {
        [UNWIND_FOUND_LEAF] = "leaf",
        [UNWIND_FOUND_CFI] = "eh_frame",
        [UNWIND_FOUND_UNWIND_INFO] = "unwind_info",
        [UNWIND_FOUND_STACK_TOP] = "stack_top",
        [UNWIND_FOUND_FLOW] = "code",
        [UNWIND_FOUND_FRAME_POINTER] = "frame_pointer",
        [UNWIND_FOUND_KERNEL] = "kernel_chain",
        [UNWIND_FOUND_ROOT_TAIL] = "root_tail",
        [UNWIND_FOUND_LATER] = "later_memory",
    };
    if (!found[UNWIND_FOUND_LEAF])
        return;
    struct buffer text;
    buffer_init(&text, 1024);
    for (size_t i = 0; i < UNWIND_FOUND_KINDS; i++)
        buffer_format(&text, "%s%s %" PRIu64, i ? " " : "", ways[i], found[i]);
    buffer_u8(&text, 0);
    trace_set_fact(t, fact, (const char *)text.data);
    buffer_done(&text);
}

void sample_unwinder_fact(const struct sample_unwinder *unwinder)
{
    struct trace *t = &unwinder->b->trace;
    tell_found(t, FACT_FRAMES_FOUND, unwinder->found[SAMPLE_CPU]);
    tell_found(t, FACT_COUNTED_FRAMES_FOUND, unwinder->found[SAMPLE_EVENT]);
}
