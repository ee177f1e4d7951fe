#include "collect/process_filter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/bpf_program.h"

enum { FILTER_PROCESSES_MAX = 16384 };

/* inode of the first pid namespace: include/linux/proc_ns.h, PROC_PID_INIT_INO */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

/* return map_lookup(map, pid of current) != NULL */
static int filter_load(int map_fd)
{
    const struct bpf_insn program[] = {
        bpf_insn_make(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
        bpf_insn_make(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32),
        bpf_insn_make(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_0, -4, 0),
        bpf_insn_make(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
        bpf_insn_make(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
        bpf_insn_make(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd),
        bpf_insn_make(0, 0, 0, 0, 0),
        bpf_insn_make(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
        bpf_insn_make(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 1, 0),
        bpf_insn_make(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1),
        bpf_insn_make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    return bpf_program_load(BPF_PROG_TYPE_PERF_EVENT, "clrperf_filter", program, ARRAY_LEN(program));
}

static bool filter_try(struct process_filter *filter, uint32_t map_flags)
{
    union bpf_attr attr = { 0 };
    attr.map_type = BPF_MAP_TYPE_HASH;
    attr.key_size = attr.value_size = 4;
    attr.max_entries = FILTER_PROCESSES_MAX;
    attr.map_flags = map_flags;
    filter->map_fd = bpf_call(BPF_MAP_CREATE, &attr);
    if (filter->map_fd >= 0)
        filter->program_fd = filter_load(filter->map_fd);
    int e = errno;
    if (filter->program_fd < 0)
        process_filter_close(filter);
    errno = e;
    return filter->program_fd >= 0;
}

bool process_filter_open(struct process_filter *filter, struct error *err)
{
    *filter = (struct process_filter){ -1, -1 };
    struct stat st;
    if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != FIRST_PID_NAMESPACE)
        return error_set(err, ERROR_UNSUPPORTED,
                         "in a pid namespace the kernel knows processes by other numbers");
    /* before 6.1 such a program may use only a map whose memory is there from the start */
    if (filter_try(filter, BPF_F_NO_PREALLOC) || (errno == EINVAL && filter_try(filter, 0)))
        return true;
    return error_system(err, errno, "cannot load the process filter");
}

void process_filter_close(struct process_filter *filter)
{
    if (filter->map_fd >= 0)
        close(filter->map_fd);
    if (filter->program_fd >= 0)
        close(filter->program_fd);
    *filter = (struct process_filter){ -1, -1 };
}

bool process_filter_add(const struct process_filter *filter, uint32_t pid)
{
    uint32_t value = 1;
    union bpf_attr attr = { 0 };
    attr.map_fd = (uint32_t)filter->map_fd;
    attr.key = (uint64_t)(uintptr_t)&pid;
    attr.value = (uint64_t)(uintptr_t)&value;
    return filter->map_fd >= 0 && bpf_call(BPF_MAP_UPDATE_ELEM, &attr) == 0;
}

void process_filter_remove(const struct process_filter *filter, uint32_t pid)
{
    union bpf_attr attr = { 0 };
    attr.map_fd = (uint32_t)filter->map_fd;
    attr.key = (uint64_t)(uintptr_t)&pid;
    if (filter->map_fd >= 0)
        bpf_call(BPF_MAP_DELETE_ELEM, &attr);
}

bool process_filter_attach(const struct process_filter *filter, int event_fd, struct error *err)
{
    if (ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, filter->program_fd) == 0)
        return true;
    return error_system(err, errno, "cannot attach the process filter");
}
