#include "collect/bpf_program.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int bpf_call(int command, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

struct bpf_insn bpf_insn_make(uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
    return (struct bpf_insn){ .code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm };
}

int bpf_program_load(enum bpf_prog_type type, const char *name, const struct bpf_insn *program, size_t count)
{
    union bpf_attr attr = { 0 };
    attr.prog_type = type;
    attr.insns = (uint64_t)(uintptr_t)program;
    attr.insn_cnt = (uint32_t)count;
    attr.license = (uint64_t)(uintptr_t) "Apache-2.0";
    memcpy(attr.prog_name, name, strnlen(name, sizeof attr.prog_name - 1));
    return bpf_call(BPF_PROG_LOAD, &attr);
}
