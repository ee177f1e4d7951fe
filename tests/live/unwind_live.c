/*
 * unwind_live: how well the stacks of a running .NET process can be unwound, in numbers.
 *
 * Usage: unwind_live PID SECONDS [-s] [-b STACK_BYTES] [-F HZ] [-f FOLDED_FILE]
 *   -s samples context switches instead of CPU time; -f writes the stacks, root first.
 * Compares with the kernel's own chains by frame pointers. The process is only read.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "live_code.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/time_queue.h"
#include "collect/perf_events.h"
#include "collect/queue_item.h"
#include "collect/runtime_session.h"

enum {
    FRAMES_MAX = 1024,
    LAG_MS = 400, /* how far the runtime's events may be behind */
    QUEUE_BYTES = 256 << 20,
    CULPRITS_MAX = 4096,
    DESCRIBED_BITS = 16,
};

struct method_item { /* of the queue */
    uint64_t addr, size_bytes;
    bool ends, dynamic;
};

struct named_method {
    uint64_t addr, size_bytes;
    char *name;
};

struct culprit {
    char *what;
    uint64_t count;
};

struct described {
    uint64_t addr;
    char *text;
};

struct live {
    struct live_code of;
    struct perf_events events;
    struct time_queue queue;
    struct named_method *names;
    size_t name_count, name_capacity;
    FILE *folded;
    struct described described[1 << DESCRIBED_BITS];
    struct culprit culprits[CULPRITS_MAX];
    size_t culprit_count;
    /* figures */
    uint64_t samples, no_user, frames, ends[4], found[UNWIND_FOUND_KINDS], hijacked;
    uint64_t kernel_root, kernel_equal, kernel_frames, spliced, not_after_call, checked, full;
    uint32_t *spent_ns;
    size_t spent_count, spent_capacity;
    uint64_t unwind_ns, slowest_ns, stack_bytes, lost, depth_max;
    uint64_t chain[FRAMES_MAX];
    struct unwind_frame stack[FRAMES_MAX];
};

static void queue_method(void *user, const struct runtime_method *m)
{
    struct live *live = user;
    struct method_item item = { m->addr, m->size_bytes, m->change == RUNTIME_METHOD_UNLOADED, m->dynamic };
    if (m->change == RUNTIME_METHOD_EXISTS_AT_END) { /* lived before we looked, mostly */
        process_code_method(live->of.code, m->addr, m->size_bytes, m->dynamic);
    } else {
        time_queue_add(&live->queue, m->time_ns, QUEUE_CODE, span_of(&item, sizeof item));
    }
    if (!item.ends && live->folded) {
        live->names = mem_grow(live->names, &live->name_capacity, live->name_count + 1, sizeof *live->names);
        live->names[live->name_count++] =
            (struct named_method){ m->addr, m->size_bytes,
                                   mem_format("%.*s", (int)m->name.size, (const char *)m->name.data) };
    }
}

static void describe(struct live *live, uint64_t addr, char *into, size_t size)
{
    struct unwind_code code = process_code_at(live->of.code, addr);
    static const char *const kinds[] = { "none", "elf", "pe", "jitted", "other" };
    if (code.kind == UNWIND_CODE_JITTED)
        for (size_t i = live->name_count; i-- > 0;)
            if (addr - live->names[i].addr < live->names[i].size_bytes) {
                snprintf(into, size, "%s", live->names[i].name);
                return;
            }
    char name[64], line[4400];
    snprintf(name, sizeof name, "/proc/%d/maps", (int)live->of.pid);
    AUTO_STREAM FILE *file =
        code.kind == UNWIND_CODE_ELF || code.kind == UNWIND_CODE_PE ? fopen(name, "re") : NULL;
    while (file && fgets(line, sizeof line, file)) {
        uint64_t start = 0, end = 0;
        char *slash = strrchr(line, '/');
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && addr >= start && addr < end && slash) {
            slash[strcspn(slash, "\n")] = 0;
            snprintf(into, size, "%s+%#" PRIx64, slash + 1, addr - code.bias);
            return;
        }
    }
    snprintf(into, size, "[%s]", kinds[code.kind]);
}

static void blame(struct live *live, const struct unwind_result *result)
{
    static const char *const ends[] = { "root", "cut", "deep", "broken" };
    char where[512], leaf[512], what[1200];
    describe(live, result->end_ip - 1, where, sizeof where);
    describe(live, live->stack[0].ip, leaf, sizeof leaf);
    snprintf(what, sizeof what, "%s at %s (leaf %s, %zu frames)", ends[result->end], where, leaf,
             result->count);
    for (size_t i = 0; i < live->culprit_count; i++)
        if (strcmp(live->culprits[i].what, what) == 0) {
            live->culprits[i].count++;
            return;
        }
    if (live->culprit_count < CULPRITS_MAX)
        live->culprits[live->culprit_count++] = (struct culprit){ mem_copy_string(what), 1 };
}

/* As describe(), remembered: what an address was at first is good enough here. */
static const char *described(struct live *live, uint64_t addr)
{
    struct described *slot = &live->described[addr * UINT64_C(0x9e3779b97f4a7c15) >> (64 - DESCRIBED_BITS)];
    if (slot->text && slot->addr == addr)
        return slot->text;
    char name[1024];
    describe(live, addr, name, sizeof name);
    for (char *c = name; *c; c++)
        if (*c == ';' || *c == ' ')
            *c = ',';
    free(slot->text);
    *slot = (struct described){ addr, mem_copy_string(name) };
    return slot->text;
}

static void write_folded(struct live *live, const struct unwind_result *result)
{
    for (size_t i = result->count; i-- > 0;) {
        const char *name = described(live, live->stack[i].exact ? live->stack[i].ip : live->stack[i].ip - 1);
        fprintf(live->folded, "%s%s", name,
                i                                ? ";"
                : result->end == UNWIND_END_ROOT ? " 1\n"
                                                 : ";[broken] 1\n");
    }
}

/* The kernel's chains end in a thread's first function; what calls that is no loss. */
static void compare_with_kernel(struct live *live, const struct perf_callchain *chain,
                                const struct unwind_result *result)
{
    enum { ROOT_FRAMES = 3 };
    live->kernel_frames += chain->user_count;
    if (result->end != UNWIND_END_ROOT || chain->user_count == 0)
        return;
    for (size_t i = result->count; i-- > 0 && result->count - i <= ROOT_FRAMES;)
        if (live->stack[i].ip == chain->user[chain->user_count - 1]) {
            bool equal = i + 1 == chain->user_count;
            for (size_t k = 0; k < i && equal; k++)
                equal = live->stack[k].ip == chain->user[k];
            live->kernel_root++;
            live->kernel_equal += equal;
            return;
        }
}

/* Each caller's address follows a call, or was given by a signal. */
static void check_calls(struct live *live, const struct unwind_result *result)
{
    for (size_t i = 1; i < result->count; i++) {
        uint8_t before[8];
        const struct unwind_frame *f = &live->stack[i];
        if (f->exact || f->hijacked || f->found == UNWIND_FOUND_KERNEL ||
            !live_code_read(&live->of, f->ip - sizeof before, before, sizeof before))
            continue;
        live->checked++;
        if (!machine_own()->is_after_call(span_of(before, sizeof before)))
            live->not_after_call++;
    }
}

static void take_sample(struct live *live, const struct perf_sample *sample)
{
    struct unwind_registers registers;
    if (sample->who.pid != (uint32_t)live->of.pid)
        return;
    if (!machine_registers_of_perf(machine_own(), machine_own()->perf_mask, sample->user_regs, &registers)) {
        live->no_user++;
        return;
    }
    struct perf_callchain chain = perf_callchain_split(sample->callchain, live->chain, FRAMES_MAX);
    struct unwind_sample input = { &registers, sample->user_stack, chain.user, chain.user_count };
    uint64_t begin_ns = clock_own_cpu_ns();
    struct unwind_result result = process_code_unwind(live->of.code, &input, live->stack, FRAMES_MAX);
    uint64_t spent_ns = clock_own_cpu_ns() - begin_ns;
    live->unwind_ns += spent_ns;
    live->spent_ns =
        mem_grow(live->spent_ns, &live->spent_capacity, live->spent_count + 1, sizeof *live->spent_ns);
    live->spent_ns[live->spent_count++] = (uint32_t)spent_ns;
    live->slowest_ns = spent_ns > live->slowest_ns ? spent_ns : live->slowest_ns;
    live->samples++;
    live->stack_bytes += sample->user_stack.size;
    live->full += sample->user_stack.size == sample->user_stack_asked;
    live->frames += result.count;
    live->depth_max = result.count > live->depth_max ? result.count : live->depth_max;
    live->ends[result.end]++;
    for (size_t i = 0; i < result.count; i++) {
        live->found[live->stack[i].found]++;
        live->hijacked += live->stack[i].hijacked;
    }
    live->spliced += result.count && live->stack[result.count - 1].found >= UNWIND_FOUND_KERNEL;
    compare_with_kernel(live, &chain, &result);
    if (live->samples % 16 == 0)
        check_calls(live, &result);
    if (result.end != UNWIND_END_ROOT)
        blame(live, &result);
    if (live->folded)
        write_folded(live, &result);
}

static void take_record(struct live *live, struct span bytes)
{
    struct perf_record record;
    if (!perf_record_decode(bytes, &live->events.layout, &record, NULL))
        return;
    if (record.type == PERF_RECORD_SAMPLE)
        take_sample(live, &record.sample);
    else if ((record.type == PERF_RECORD_MMAP || record.type == PERF_RECORD_MMAP2) &&
             record.mmap.pid == (uint32_t)live->of.pid && record.mmap.prot & PROT_EXEC)
        live_code_map(&live->of, record.mmap.addr, record.mmap.size_bytes, record.mmap.file_off,
                      record.mmap.path);
    else if (record.type == PERF_RECORD_LOST || record.type == PERF_RECORD_LOST_SAMPLES)
        live->lost += record.lost.count;
}

static void take_item(void *user, const struct time_item *queued, struct span bytes)
{
    struct live *live = user;
    struct method_item item;
    if (queued->kind == QUEUE_PERF_RECORD) {
        take_record(live, bytes);
        return;
    }
    memcpy(&item, bytes.data, sizeof item);
    if (item.ends)
        process_code_method_end(live->of.code, item.addr);
    else
        process_code_method(live->of.code, item.addr, item.size_bytes, item.dynamic);
}

static bool queue_record(void *user, struct span bytes)
{
    struct live *live = user;
    time_queue_add(&live->queue, perf_record_time_ns(bytes, &live->events.layout), QUEUE_PERF_RECORD, bytes);
    return true;
}

static void watch(struct live *live, struct runtime_session *session, uint64_t duration_ns)
{
    const struct runtime_sink sink = { .user = live, .method = queue_method };
    uint64_t end_ns = clock_monotonic_ns() + duration_ns;
    for (uint64_t now_ns; (now_ns = clock_monotonic_ns()) < end_ns;) {
        poll(NULL, 0, 20);
        for (size_t i = 0; i < live->events.ring_count; i++)
            if (live->events.rings[i].page)
                perf_ring_drain(&live->events.rings[i], queue_record, live);
        if (session)
            runtime_session_drain(session, &sink, NULL);
        time_queue_release(&live->queue, now_ns - LAG_MS * UINT64_C(1000000), take_item, live);
    }
    time_queue_release(&live->queue, UINT64_MAX, take_item, live);
}

/* The methods that are there already: a session of its own that is stopped at once. */
static void list_methods(struct live *live)
{
    struct error err;
    struct runtime_session *s;
    const struct runtime_session_options options = { 0 };
    const struct runtime_sink sink = { .user = live, .method = queue_method };
    if (!runtime_session_start(live->of.pid, 0, &options, &s, &err)) {
        fprintf(stderr, "no methods: %s\n", err.what);
        return;
    }
    bool ok = runtime_session_stop(s, &err);
    uint64_t deadline_ns = clock_monotonic_ns() + UINT64_C(20000000000);
    while (ok && !runtime_session_ended(s) && clock_monotonic_ns() < deadline_ns) {
        struct pollfd wait[RUNTIME_SESSION_STREAMS];
        poll(wait, runtime_session_polls(s, wait), 100);
        ok = runtime_session_drain(s, &sink, &err);
    }
    if (!ok || !runtime_session_complete(s))
        fprintf(stderr, "the list of methods is not complete\n");
    runtime_session_close(s);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static int compare_culprits(const void *a, const void *b)
{
    uint64_t x = ((const struct culprit *)a)->count, y = ((const struct culprit *)b)->count;
    return x < y ? 1 : x > y ? -1 : 0;
}

static int compare_times(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The time that so many percent of the samples took at most. */
static double spent_us(const struct live *live, unsigned percent_of)
{
    return live->spent_count ? live->spent_ns[(live->spent_count - 1) * percent_of / 100] / 1e3 : 0;
}

static void report(struct live *live)
{
    static const char *const found[UNWIND_FOUND_KINDS] = {
        "leaf",          "eh_frame",     "UNWIND_INFO", "stack top",    "code",
        "frame pointer", "kernel chain", "root tail",   "later memory",
    };
    double samples = live->samples ? (double)live->samples : 1;
    printf("%" PRIu64 " samples, %" PRIu64 " without user registers, %" PRIu64 " lost\n", live->samples,
           live->no_user, live->lost);
    printf("whole %.3f %% (%" PRIu64 " spliced), cut %" PRIu64 ", deep %" PRIu64 ", broken %" PRIu64 "\n",
           percent(live->ends[0], live->samples), live->spliced, live->ends[1], live->ends[2], live->ends[3]);
    printf("kernel chains: to the thread's start %.3f %%, with all frames %.3f %%, mean depth %.1f\n",
           percent(live->kernel_root, live->samples), percent(live->kernel_equal, live->samples),
           (double)live->kernel_frames / samples);
    printf("mean depth %.1f, deepest %" PRIu64 "; stack bytes %.0f, %.1f %% full\n",
           (double)live->frames / samples, live->depth_max, (double)live->stack_bytes / samples,
           percent(live->full, live->samples));
    printf("frames:");
    for (size_t i = 0; i < UNWIND_FOUND_KINDS; i++)
        printf(" %s %.3f %%%s", found[i], percent(live->found[i], live->frames),
               i + 1 < UNWIND_FOUND_KINDS ? "," : "");
    printf("; hijacked %" PRIu64 "\n", live->hijacked);
    printf("callers that follow no call: %" PRIu64 " of %" PRIu64 "\n", live->not_after_call, live->checked);
    struct unwind_images_stats images = unwind_images_stats(live->of.images);
    struct process_code_stats code = process_code_stats(live->of.code);
    printf("%.2f us a sample (slowest %.1f ms), of which images %.1f ms in all, %u of them; "
           "without them %.2f us\n",
           (double)live->unwind_ns / samples / 1e3, (double)live->slowest_ns / 1e6,
           (double)images.open_ns / 1e6, images.opened,
           (double)(live->unwind_ns - images.open_ns) / samples / 1e3);
    qsort(live->spent_ns, live->spent_count, sizeof *live->spent_ns, compare_times);
    printf("half of the samples took at most %.2f us, 90 %% %.2f us, 99 %% %.2f us\n", spent_us(live, 50),
           spent_us(live, 90), spent_us(live, 99));
    printf("%u methods, unwind data of %u read, %u refused, %" PRIu64 " bytes; %" PRIu64
           " reads of memory, %" PRIu64 " of mappings\n",
           code.methods, code.methods_read, code.methods_refused, code.method_bytes, code.reads,
           code.refreshes);
    qsort(live->culprits, live->culprit_count, sizeof *live->culprits, compare_culprits);
    for (size_t i = 0; i < live->culprit_count && i < 12; i++)
        printf("  %" PRIu64 " %s\n", live->culprits[i].count, live->culprits[i].what);
}

int main(int argc, char **argv)
{
    static struct live live;
    struct perf_events_options options = { .cgroup_fd = -1,
                                           .rate_hz = 499,
                                           .ring_pages = 4096,
                                           .user_registers = machine_own()->perf_mask,
                                           .user_stack_bytes = 32 << 10,
                                           .switch_stack_bytes = 32 << 10,
                                           .cpu = true };
    if (argc < 3)
        return 2;
    pid_t pid = (pid_t)strtol(argv[1], NULL, 10);
    for (int i = 3; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (strcmp(argv[i], "-s") == 0) {
            options.context_switches = true, options.cpu = false;
            continue;
        }
        if (strcmp(argv[i], "-b") == 0)
            options.user_stack_bytes = options.switch_stack_bytes = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "-F") == 0)
            options.rate_hz = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "-f") == 0)
            live.folded = fopen(value, "we");
        i++;
    }
    options.pids = &pid;
    options.pid_count = 1;
    time_queue_init(&live.queue, QUEUE_BYTES);
    struct error err;
    struct runtime_session *session = NULL;
    if (!live_code_open(&live.of, pid, NULL))
        return 1;
    const struct runtime_session_options session_options = { 0 };
    if (!runtime_session_start(pid, 0, &session_options, &session, &err))
        fprintf(stderr, "no runtime: %s\n", err.what);
    list_methods(&live);
    if (!perf_events_open(&options, &live.events, &err) || !perf_events_enable(&live.events, &err)) {
        fprintf(stderr, "error: %s\n", err.what);
        return 77;
    }
    watch(&live, session, strtoull(argv[2], NULL, 10) * 1000000000);
    perf_events_disable(&live.events);
    report(&live);
    perf_events_close(&live.events);
    runtime_session_close(session);
    live_code_close(&live.of);
    time_queue_done(&live.queue);
    if (live.folded)
        fclose(live.folded);
    return 0;
}
