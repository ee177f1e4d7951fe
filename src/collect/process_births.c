#include "collect/process_births.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/own.h"
#include "collect/bpf_program.h"
#include "collect/tracepoint.h"
#include "read/tracepoint_format.h"

/* Of the tracepoint's record: who is new, and how it was asked for. */
struct birth_format {
    uint32_t id;
    uint16_t pid, flags;
};

static bool format_parse(struct span text, struct birth_format *out, struct error *err)
{
    struct tracepoint_field pid, flags;
    if (!tracepoint_format_id(text, &out->id) || !tracepoint_format_field(text, "pid", &pid) ||
        !tracepoint_format_field(text, "clone_flags", &flags) || pid.size != 4 || flags.size != 8 ||
        pid.offset > INT16_MAX || flags.offset > INT16_MAX)
        return error_set(err, ERROR_UNSUPPORTED, "the tracepoint task_newtask is not as we know it");
    out->pid = pid.offset;
    out->flags = flags.offset;
    return true;
}

static bool format_read(struct birth_format *out, struct error *err)
{
    struct buffer text;
    buffer_init(&text, TRACEPOINT_FORMAT_BYTES_MAX);
    bool ok = tracepoint_read_format("task/task_newtask", &text, err) &&
              format_parse(span_of(text.data, text.size), out, err);
    buffer_done(&text);
    return ok;
}

/* if (!(flags & CLONE_THREAD) && map_lookup(map, pid of current)) map_update(map, the new pid, 1) */
static int births_load(int map_fd, const struct birth_format *format)
{
    enum { PARENT = -4, CHILD = -8, ONE = -12, END = 24 /* return 0 */ };
    const struct bpf_insn program[] = {
        bpf_insn_make(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0),
        bpf_insn_make(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_6, (int16_t)format->flags, 0),
        bpf_insn_make(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_1, 0, 0, CLONE_THREAD),
        bpf_insn_make(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_1, 0, END - 4, 0),
        bpf_insn_make(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
        bpf_insn_make(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32),
        bpf_insn_make(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_0, PARENT, 0),
        bpf_insn_make(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
        bpf_insn_make(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, PARENT),
        bpf_insn_make(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd),
        bpf_insn_make(0, 0, 0, 0, 0),
        bpf_insn_make(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
        bpf_insn_make(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, END - 13, 0),
        bpf_insn_make(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_1, BPF_REG_6, (int16_t)format->pid, 0),
        bpf_insn_make(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_1, CHILD, 0),
        bpf_insn_make(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, ONE, 1),
        bpf_insn_make(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
        bpf_insn_make(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, CHILD),
        bpf_insn_make(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_10, 0, 0),
        bpf_insn_make(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, ONE),
        bpf_insn_make(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd),
        bpf_insn_make(0, 0, 0, 0, 0),
        bpf_insn_make(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, BPF_ANY),
        bpf_insn_make(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_update_elem),
        bpf_insn_make(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
        bpf_insn_make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    return bpf_program_load(BPF_PROG_TYPE_TRACEPOINT, "clrperf_births", program, ARRAY_LEN(program));
}

static int event_open(uint32_t tracepoint, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT,
        .config = tracepoint,
        .size = sizeof attr,
        .sample_period = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* One event's program runs for all CPUs. */
bool process_births_open(struct process_births *births, const struct process_filter *filter, int cpu,
                         struct error *err)
{
    struct birth_format format;
    *births = (struct process_births){ -1, -1 };
    if (!format_read(&format, err))
        return false;
    births->program_fd = births_load(filter->map_fd, &format);
    if (births->program_fd >= 0)
        births->event_fd = event_open(format.id, cpu);
    if (births->event_fd >= 0 && ioctl(births->event_fd, PERF_EVENT_IOC_SET_BPF, births->program_fd) == 0 &&
        ioctl(births->event_fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
        return true;
    int e = errno;
    process_births_close(births);
    return error_system(err, e, "cannot watch for new processes");
}

void process_births_close(struct process_births *births)
{
    if (births->event_fd >= 0)
        close(births->event_fd);
    if (births->program_fd >= 0)
        close(births->program_fd);
    *births = (struct process_births){ -1, -1 };
}
