#include "collect/sample_stacks.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collect/process_scan.h"
#include "collect/queue_item.h"
#include "collect/waiting_sample.h"
#include "read/procfs.h"
#include "unwind/callchain.h"

enum { CHAIN_MAX = 1024 };

/* How long what execve() still does then may take. */
#define EXEC_NS_MAX (UINT64_C(100) * 1000000)

struct sample_stacks {
    struct trace_builder *b;
    const struct target_files *files;
    struct memory_names *memory;
    struct sample_unwinder *unwinder;
    size_t chain_frames_max;
    bool chain_is_cut;         /* of the sample that is judged */
    uint64_t chain[CHAIN_MAX]; /* of the sample that is added */
};

/* Where a sample's process is looked up, as it was then, while its callchain is judged. */
struct sample_space {
    const struct trace_builder *b;
    uint32_t process;
    uint64_t time_ns;
};

static uint32_t space_mapping(const struct sample_space *space, uint64_t addr)
{
    return trace_builder_mapping_then(space->b, space->process, addr, space->time_ns);
}

static bool space_is_code(void *user, uint64_t addr)
{
    return space_mapping(user, addr) != 0;
}

static bool space_is_root(void *user, uint64_t addr)
{
    const struct sample_space *space = user;
    return process_scan_is_root(space->b, space_mapping(space, addr));
}

/* The user frames that are believed, and how the whole stack ended. A kernel thread's stack is whole. */
static size_t chain_judge(void *user, uint32_t process, const struct raw_sample *s, enum stack_end *out_end)
{
    static const enum stack_end ends[] = { STACK_WHOLE, STACK_TRUNCATED, STACK_BROKEN };
    const struct sample_stacks *stacks = user;
    if (s->user_count == 0) {
        *out_end = s->kernel_count ? STACK_WHOLE : STACK_BROKEN;
        return 0;
    }
    struct sample_space where = { stacks->b, process, s->time_ns };
    struct callchain_space space = { .is_code = space_is_code, .is_root = space_is_root, .user = &where };
    struct callchain chain = {
        .frames = s->user,
        .count = s->user_count,
        .is_cut = stacks->chain_is_cut || s->user_count + s->kernel_count >= stacks->chain_frames_max,
    };
    enum callchain_end end;
    size_t count = callchain_frames(&chain, &space, &end);
    *out_end = ends[end];
    return count;
}

/*
 * In the midst of execve(): the registers are the former program's, whose memory is no more. Nothing of the
 * new one has run, so that the kernel's frames are all there is.
 */
static bool is_execing(const struct sample_stacks *stacks, uint32_t process, const struct perf_sample *sample,
                       const struct perf_callchain *chain, const struct unwound_stack *stack)
{
    uint64_t began_ns = stacks->b->trace.processes.rows[process].from_ns;
    return chain->kernel_count && stack->end == STACK_BROKEN && stack->count == 1 && began_ns &&
           sample->who.time_ns - began_ns < EXEC_NS_MAX &&
           !trace_builder_mapping_at(stacks->b, process, stack->ips[0]);
}

static bool wait_in(struct time_queue *queue, const struct raw_sample *raw)
{
    size_t size = waiting_sample_size(raw);
    uint8_t *room = time_queue_room(queue, size);
    if (!room)
        return false;
    waiting_sample_put(raw, room);
    time_queue_add_made(queue, raw->time_ns, QUEUE_SAMPLE, size);
    return true;
}

bool sample_stacks_find(struct sample_stacks *stacks, uint32_t process, const struct perf_sample *sample,
                        struct raw_sample *raw, struct time_queue *queue)
{
    struct unwound_stack stack;
    struct perf_callchain chain = { 0 };
    if (sample->user_regs.size)
        chain = perf_callchain_split(sample->callchain, stacks->chain, CHAIN_MAX);
    if (!sample->user_regs.size || !sample_unwinder_run(stacks->unwinder, process, raw->kind, sample,
                                                        chain.user, chain.user_count, &stack)) {
        raw->chain = sample->callchain;
        raw->end = STACK_BROKEN; /* when it is empty */
        return wait_in(queue, raw);
    }
    if (stack.leaf_is_strange)
        memory_names_look_at_stub(stacks->memory, process, stack.ips[0]);
    raw->kernel = chain.kernel;
    raw->kernel_count = chain.kernel_count;
    if (is_execing(stacks, process, sample, &chain, &stack))
        stack = (struct unwound_stack){ .end = STACK_WHOLE };
    raw->user = stack.ips;
    raw->user_exact = stack.exact;
    raw->user_count = stack.count;
    raw->end = stack.end;
    return wait_in(queue, raw);
}

/* Of the kernel's chain of addresses, which is all there is of a stack. */
static uint32_t add_chain(struct sample_stacks *stacks, struct raw_sample *raw)
{
    uint32_t stack = trace_builder_sample_again(stacks->b, raw);
    if (stack)
        return stack;
    struct perf_callchain chain = perf_callchain_split(raw->chain, stacks->chain, CHAIN_MAX);
    stacks->chain_is_cut = chain.is_cut;
    raw->kernel = chain.kernel;
    raw->kernel_count = chain.kernel_count;
    raw->user = chain.user;
    raw->user_count = chain.user_count;
    raw->user_exact = NULL;
    raw->judge = chain_judge;
    raw->judge_user = stacks;
    return trace_builder_sample(stacks->b, raw);
}

void sample_stacks_expect(struct sample_stacks *stacks, struct span item)
{
    struct raw_sample raw = waiting_sample_get(item);
    trace_builder_sample_expect(stacks->b, &raw);
}

enum stack_end sample_stacks_add(struct sample_stacks *stacks, struct span item)
{
    struct raw_sample raw = waiting_sample_get(item);
    raw.by_callers = true;
    uint32_t stack = raw.chain.size ? add_chain(stacks, &raw) : trace_builder_sample(stacks->b, &raw);
    memory_names_sampled(stacks->memory, stacks->b->trace.threads.rows[raw.thread].process, stack);
    return trace_builder_stack_end(stacks->b, stack);
}

size_t sample_stacks_trim(struct sample_stacks *stacks, const struct perf_sample_layout *layout,
                          struct span bytes, uint8_t *into)
{
    struct perf_record record;
    if (!perf_record_decode(bytes, layout, &record, NULL) || record.type != PERF_RECORD_SAMPLE)
        return 0;
    uint64_t need = sample_unwinder_need(stacks->unwinder, &record.sample);
    return perf_record_cut_stack(bytes, &record.sample, need, into);
}

bool sample_stacks_are_pressed(const struct sample_stacks *stacks)
{
    return sample_unwinder_is_pressed(stacks->unwinder);
}

void sample_stacks_method(struct sample_stacks *stacks, uint32_t process, const struct method_place *method,
                          bool ends)
{
    sample_unwinder_method(stacks->unwinder, process, method, ends);
}

void sample_stacks_mapped(struct sample_stacks *stacks, uint32_t process, uint64_t addr)
{
    sample_unwinder_mapped(stacks->unwinder, process, addr);
}

/* Its name may be gone since it was mapped. */
static int open_file(void *user, uint32_t process, const char *path)
{
    const struct sample_stacks *stacks = user;
    char deleted[PATH_MAX];
    int fd = target_files_open(stacks->files, process, path);
    if (fd >= 0 || (size_t)snprintf(deleted, sizeof deleted, "%s" PROCFS_DELETED, path) >= sizeof deleted)
        return fd;
    return target_files_open(stacks->files, process, deleted);
}

static bool read_memory(void *user, uint32_t process, uint64_t time_ns, uint64_t addr, void *into,
                        size_t size)
{
    const struct sample_stacks *stacks = user;
    return memory_names_read(stacks->memory, process, time_ns, addr, into, size);
}

static void follow_method(void *user, uint32_t process, uint64_t time_ns, uint64_t begin)
{
    const struct sample_stacks *stacks = user;
    memory_names_follow(stacks->memory, process, time_ns, begin);
}

static bool find_method(void *user, uint32_t process, uint64_t addr, uint64_t time_ns)
{
    const struct sample_stacks *stacks = user;
    struct method_place method; /* of which sample_stacks_method() is told */
    memory_names_find(stacks->memory, process, addr, time_ns, &method);
    return memory_names_knows(stacks->memory, process);
}

static void refresh(void *user, uint32_t process)
{
    const struct sample_stacks *stacks = user;
    process_scan_mappings(stacks->b, process, clock_monotonic_ns());
}

static void begin_unwinding(struct sample_stacks *stacks)
{
    struct sample_sources sources = {
        .machine = machine_own(),
        .registers = machine_own()->perf_mask,
        .own_kernel = true,
        .open = open_file,
        .read = read_memory,
        .follow_method = follow_method,
        .find_method = find_method,
        .refresh = refresh,
        .user = stacks,
    };
    stacks->unwinder = sample_unwinder_new(stacks->b, &sources);
}

void sample_stacks_finish(struct sample_stacks *stacks)
{
    sample_unwinder_fact(stacks->unwinder);
    sample_unwinder_free(stacks->unwinder);
    begin_unwinding(stacks);
}

struct sample_stacks *sample_stacks_new(struct trace_builder *b, const struct target_files *files,
                                        struct memory_names *memory, size_t chain_frames_max)
{
    struct sample_stacks *stacks = mem_alloc(1, sizeof *stacks);
    stacks->b = b;
    stacks->files = files;
    stacks->memory = memory;
    begin_unwinding(stacks);
    stacks->chain_frames_max = chain_frames_max;
    return stacks;
}

void sample_stacks_free(struct sample_stacks *stacks)
{
    if (!stacks)
        return;
    sample_unwinder_free(stacks->unwinder);
    free(stacks);
}
