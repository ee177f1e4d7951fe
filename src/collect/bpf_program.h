/*
 * bpf_program: loads a BPF program that is written out instruction by instruction, without libbpf.
 */
#ifndef CLRPERF_COLLECT_BPF_PROGRAM_H
#define CLRPERF_COLLECT_BPF_PROGRAM_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* The system call; -1 and errno when it fails. */
int bpf_call(int command, union bpf_attr *attr);
/* One instruction, as uapi/linux/bpf.h names its parts. */
struct bpf_insn bpf_insn_make(uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm);
/* A descriptor of the program, or -1 and errno. `name`: at most 15 characters. */
int bpf_program_load(enum bpf_prog_type type, const char *name, const struct bpf_insn *program, size_t count);

#endif
