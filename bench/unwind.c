/*
 * Times the unwinder on recorded stacks of a running .NET process, without anything around it (rows U1, U2):
 *   unwind stacks PID SAMPLES   samples with registers and stack bytes are kept, the process is stopped (and
 * goes on afterwards), and each stack is unwound by us and by libdw unwind rows PID             compiles the
 * eh_frame rows of all its ELF images, median of 9 Prints lines of KEY VALUE. CPU time of this thread.
 */
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "live_code.h"

#include "base/clock.h"
#include "base/mem.h"
#include "clr/code_walk.h"
#include "collect/live_memory.h"
#include "collect/perf_events.h"

enum {
    FRAMES_MAX = 1024,
    STACK_BYTES = 32 << 10,
    DEPTH_MIN = 32, /* what "a depth of some 40" is */
    DEPTH_MAX = 48,
    DISTURB_BYTES = 8 << 20, /* read in between, which is more than a core's own caches hold */
    LINE_BYTES = 64,
    RUNS = 9,
    LOOKS = 5,
    SAMPLE_S_MAX = 60,
};

struct kept {
    uint32_t tid;
    struct unwind_registers registers;
    uint8_t *stack;
    size_t stack_bytes;
    uint64_t *chain;
    size_t chain_count;
};

struct bench {
    struct live_code live; /* first: find_method() is given it */
    struct perf_events events;
    struct live_memory *memory;
    struct code_walk *walk;
    bool asking; /* for methods */
    struct kept *kept;
    size_t count, wanted;
    Dwfl *dwfl;
    const struct kept *now; /* libdw unwinds it */
    uint8_t *disturbance;
    uint64_t sum;
    double clock_ns; /* what reading the clock takes */
    uint64_t chain[FRAMES_MAX];
    /* what came of the last one */
    struct unwind_result result;
    struct unwind_frame frames[FRAMES_MAX];
    uint64_t peer_frames[FRAMES_MAX];
    size_t peer_count;
    bool peer_whole;
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure_clock(struct bench *b)
{
    b->clock_ns = 1e9;
    for (int i = 0; i < 1000; i++) {
        double begin = now_ns(), took = now_ns() - begin;
        b->clock_ns = took < b->clock_ns ? took : b->clock_ns;
    }
}

static void disturb(struct bench *b)
{
    for (size_t i = 0; i < DISTURB_BYTES; i += LINE_BYTES)
        b->sum += b->disturbance[i];
}

/* Samples. */

static bool keep(void *user, struct span bytes)
{
    struct bench *b = user;
    struct perf_record record;
    struct kept k;
    if (b->count == b->wanted || !perf_record_decode(bytes, &b->events.layout, &record, NULL) ||
        record.type != PERF_RECORD_SAMPLE || record.sample.who.pid != (uint32_t)b->live.pid ||
        !machine_registers_of_perf(machine_own(), machine_own()->perf_mask, record.sample.user_regs,
                                   &k.registers))
        return true;
    const struct perf_sample *s = &record.sample;
    struct perf_callchain chain = perf_callchain_split(s->callchain, b->chain, FRAMES_MAX);
    k.tid = s->who.tid;
    k.stack = memcpy(mem_alloc(s->user_stack.size + 1, 1), s->user_stack.data, s->user_stack.size);
    k.stack_bytes = s->user_stack.size;
    k.chain_count = chain.user_count;
    k.chain = mem_alloc(chain.user_count + 1, sizeof *k.chain);
    memcpy(k.chain, chain.user, chain.user_count * sizeof *k.chain);
    b->kept[b->count++] = k;
    return true;
}

static bool take_samples(struct bench *b, struct error *err)
{
    const struct perf_events_options options = { .pids = &b->live.pid,
                                                 .pid_count = 1,
                                                 .cgroup_fd = -1,
                                                 .rate_hz = 499,
                                                 .ring_pages = 4096,
                                                 .user_registers = machine_own()->perf_mask,
                                                 .user_stack_bytes = STACK_BYTES,
                                                 .cpu = true };
    if (!perf_events_open(&options, &b->events, err) || !perf_events_enable(&b->events, err))
        return false;
    uint64_t end_ns = clock_monotonic_ns() + SAMPLE_S_MAX * UINT64_C(1000000000);
    while (b->count < b->wanted && clock_monotonic_ns() < end_ns) {
        poll(NULL, 0, 20);
        for (size_t i = 0; i < b->events.ring_count; i++)
            if (b->events.rings[i].page)
                perf_ring_drain(&b->events.rings[i], keep, b);
    }
    kill(b->live.pid, SIGSTOP); /* what the stacks lead through stays */
    perf_events_close(&b->events);
    return true;
}

/* Ours. */

static bool find_method(void *user, uint64_t addr)
{
    struct bench *b = user;
    struct found_method found;
    if (!b->asking || !code_walk_find(b->walk, addr, &found) || found.end <= found.begin ||
        found.kind == FOUND_STUB)
        return b->asking;
    process_code_method(b->live.code, found.begin, found.end - found.begin, false);
    return true;
}

/* The time it takes. */
static double unwind_ours(struct bench *b, const struct kept *k)
{
    struct unwind_sample input = { &k->registers, span_of(k->stack, k->stack_bytes), k->chain,
                                   k->chain_count };
    double begin = now_ns();
    b->result = process_code_unwind(b->live.code, &input, b->frames, FRAMES_MAX);
    return now_ns() - begin - b->clock_ns;
}

/* libdw's: it knows ELF images, and follows frame pointers elsewhere. */

static pid_t peer_next_thread(Dwfl *dwfl, void *user, void **thread)
{
    struct bench *b = user;
    (void)dwfl;
    if (*thread)
        return 0;
    *thread = b;
    return (pid_t)b->now->tid;
}

static bool peer_get_thread(Dwfl *dwfl, pid_t tid, void *user, void **thread)
{
    struct bench *b = user;
    (void)dwfl;
    *thread = b;
    return tid == (pid_t)b->now->tid;
}

static bool peer_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *out, void *user)
{
    const struct bench *b = user;
    const struct kept *k = b->now;
    uint64_t at = addr - k->registers.sp;
    (void)dwfl;
    if (addr >= k->registers.sp && at + sizeof *out <= k->stack_bytes) {
        memcpy(out, k->stack + at, sizeof *out);
        return true;
    }
    return false;
}

static bool peer_registers(Dwfl_Thread *thread, void *user)
{
    const struct bench *b = user;
    const struct machine *m = machine_own();
    Dwarf_Word words[MACHINE_REGISTERS_MAX];
    for (unsigned i = 0; i < m->register_count; i++)
        words[i] = b->now->registers.numbered[i];
    dwfl_thread_state_register_pc(thread, b->now->registers.ip);
    return dwfl_thread_state_registers(thread, 0, m->ip == m->register_count - 1 ? m->ip : m->register_count,
                                       words);
}

static int peer_frame(Dwfl_Frame *frame, void *user)
{
    struct bench *b = user;
    Dwarf_Addr pc;
    bool exact;
    if (b->peer_count == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    b->peer_frames[b->peer_count++] = pc;
    return DWARF_CB_OK;
}

static double unwind_peer(struct bench *b, const struct kept *k)
{
    b->now = k;
    b->peer_count = 0;
    double begin = now_ns();
    b->peer_whole = dwfl_getthread_frames(b->dwfl, (pid_t)k->tid, peer_frame, b) == 0;
    return now_ns() - begin - b->clock_ns;
}

static bool is_equal(const struct bench *b)
{
    bool equal = b->peer_count == b->result.count;
    for (size_t i = 0; i < b->peer_count && equal; i++)
        equal = b->peer_frames[i] == b->frames[i].ip;
    return equal;
}

static bool peer_open(struct bench *b)
{
    static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_linux_proc_find_elf,
                                              .find_debuginfo = dwfl_standard_find_debuginfo };
    static const Dwfl_Thread_Callbacks threads = { .next_thread = peer_next_thread,
                                                   .get_thread = peer_get_thread,
                                                   .memory_read = peer_read,
                                                   .set_initial_registers = peer_registers };
    b->dwfl = dwfl_begin(&callbacks);
    return b->dwfl && dwfl_linux_proc_report(b->dwfl, b->live.pid) == 0 &&
           dwfl_report_end(b->dwfl, NULL, NULL) == 0 &&
           dwfl_attach_state(b->dwfl, NULL, b->live.pid, &threads, b);
}

/* Figures. */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What one stack costs us and libdw, the median of looks in turn. */
static void time_one(struct bench *b, const struct kept *k, bool disturbed, double *out_ns,
                     double *out_peer_ns)
{
    double ns[LOOKS], peer_ns[LOOKS];
    for (int i = 0; i < LOOKS; i++) {
        if (disturbed)
            disturb(b);
        ns[i] = unwind_ours(b, k);
        if (disturbed)
            disturb(b);
        peer_ns[i] = unwind_peer(b, k);
    }
    qsort(ns, LOOKS, sizeof *ns, compare_doubles);
    qsort(peer_ns, LOOKS, sizeof *peer_ns, compare_doubles);
    *out_ns = ns[LOOKS / 2];
    *out_peer_ns = peer_ns[LOOKS / 2];
}

static void time_samples(struct bench *b)
{
    double sums[2] = { 0 }, peer_sums[2] = { 0 }, count = 0, frames = 0, peer_frames = 0;
    unsigned whole = 0, peer_whole = 0, equal = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct kept *k = &b->kept[i];
        unwind_ours(b, k);
        if (b->result.count < DEPTH_MIN || b->result.count > DEPTH_MAX)
            continue;
        unwind_peer(b, k);
        count++;
        frames += (double)b->result.count;
        whole += b->result.end == UNWIND_END_ROOT;
        peer_frames += (double)b->peer_count;
        peer_whole += b->peer_whole;
        equal += is_equal(b);
        for (int disturbed = 0; disturbed < 2; disturbed++) {
            double ns, peer_ns;
            time_one(b, k, disturbed, &ns, &peer_ns);
            sums[disturbed] += ns;
            peer_sums[disturbed] += peer_ns;
        }
    }
    double n = count > 0 ? count : 1;
    printf("samples %.0f\ndepth %.1f\nwhole_share %.4f\n", count, frames / n, whole / n);
    printf("peer_depth %.1f\npeer_whole_share %.4f\nequal_share %.4f\n", peer_frames / n, peer_whole / n,
           equal / n);
    printf("warm_us %.3f\nwarm_peer_us %.3f\n", sums[0] / n / 1e3, peer_sums[0] / n / 1e3);
    printf("disturbed_us %.3f\ndisturbed_peer_us %.3f\n", sums[1] / n / 1e3, peer_sums[1] / n / 1e3);
}

static bool time_stacks(struct bench *b, struct error *err)
{
    b->disturbance = mem_alloc(DISTURB_BYTES, 1);
    memset(b->disturbance, 1, DISTURB_BYTES);
    b->kept = mem_alloc(b->wanted, sizeof *b->kept);
    bool ok = take_samples(b, err) && live_memory_open(b->live.pid, 0, &b->memory, err) &&
              code_walk_open(live_memory_view(b->memory), NULL, &b->walk, err);
    if (ok && !peer_open(b))
        ok = error_set(err, ERROR_UNSUPPORTED, "libdw: %s", dwfl_errmsg(-1));
    if (ok) {
        live_code_scan(&b->live);
        measure_clock(b);
        b->asking = true;
        for (size_t i = 0; i < b->count; i++) {
            unwind_ours(b, &b->kept[i]);
            unwind_peer(b, &b->kept[i]);
        }
        b->asking = false; /* all there is to know of images and methods is known */
        time_samples(b);
    }
    kill(b->live.pid, SIGCONT);
    code_walk_close(b->walk);
    live_memory_close(b->memory);
    dwfl_end(b->dwfl);
    return ok;
}

/* Rows. */

static double compile_all(const struct bench *b, size_t *out_images, uint64_t *out_rows,
                          double *out_largest_ms)
{
    double begin = now_ns(), largest = 0;
    *out_images = 0;
    *out_rows = 0;
    for (size_t i = 1; i < b->live.file_count; i++) {
        char path[4200];
        struct source file;
        struct elf e;
        struct eh_rows all;
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)b->live.pid, b->live.files[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        double one = now_ns();
        if (fd >= 0 && source_over_fd(fd, 0, UINT64_MAX, &file, NULL) && elf_open(&file, &e, NULL)) {
            ++*out_images;
            if (eh_rows_read(&e, &all, NULL)) {
                *out_rows += all.count;
                eh_rows_done(&all);
            }
            elf_done(&e);
        }
        one = now_ns() - one;
        largest = one > largest ? one : largest;
        close(fd);
    }
    *out_largest_ms = largest / 1e6;
    return (now_ns() - begin) / 1e6;
}

static void time_rows(const struct bench *b)
{
    double ms[RUNS], largest_ms;
    size_t images;
    uint64_t rows;
    for (int i = 0; i < RUNS; i++)
        ms[i] = compile_all(b, &images, &rows, &largest_ms);
    qsort(ms, RUNS, sizeof *ms, compare_doubles);
    printf("rows_ms %.3f\nfastest_ms %.3f\nlargest_ms %.3f\nimages %zu\nrows %" PRIu64 "\n", ms[RUNS / 2],
           ms[0], largest_ms, images, rows);
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct error err = { 0 };
    if (argc < 3)
        return 2;
    bool ok = live_code_open(&b.live, (pid_t)strtol(argv[2], NULL, 10), find_method);
    if (ok && strcmp(argv[1], "rows") == 0) {
        time_rows(&b);
    } else if (ok) {
        b.wanted = argc > 3 ? strtoull(argv[3], NULL, 10) : 4000;
        ok = time_stacks(&b, &err);
    }
    if (!ok)
        fprintf(stderr, "unwind: %s\n", err.what);
    live_code_close(&b.live);
    return ok ? 0 : 1;
}
