/*
 * cpu_account: the CPU time that watched processes used, by the kernel's own account.
 *
 * Without the right to watch CPUs, and of a command whose children we would learn of late, there is a clock
 * for each thread on each CPU, and a sample when that one has run full: threads that run for a moment at a
 * time have none for long. Where CPUs are watched, a clock that is late leaves samples out, which the kernel
 * does not tell of either. Only this account does.
 */
#ifndef CLRPERF_COLLECT_CPU_ACCOUNT_H
#define CLRPERF_COLLECT_CPU_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cpu_account;

/* Whose time counts, and what clocks there are. */
struct cpu_account_scope {
    bool kernel;   /* also what is spent in the kernel */
    bool children; /* also that of children which were waited for */
    bool all_cpus; /* one clock a CPU, which goes on all the time */
};

/* From now on; of processes that are there. */
struct cpu_account *cpu_account_open(const pid_t *pids, size_t count, struct cpu_account_scope scope);
void cpu_account_close(struct cpu_account *account);
/* Since then; of those that have ended meanwhile, and were waited for, nothing is known. NULL: 0. */
uint64_t cpu_account_ns(const struct cpu_account *account);
/* Whether so little of what was used has samples that they mislead. NULL: no. */
bool cpu_account_is_gap(const struct cpu_account *account, uint64_t used_ns, uint64_t sampled_ns);
/* Says so, and why, and what sees more. */
void cpu_account_tell_gap(const struct cpu_account *account, uint64_t used_ns, uint64_t sampled_ns, char *out,
                          size_t out_size);

#endif
