/*
 * cpu_account: the CPU time that watched processes used, by the kernel's own account.
 *
 * Without the right to watch CPUs there is a clock for each thread on each CPU, and a sample when that one
 * has run full: threads that run for a moment at a time have none for long. Only this account tells.
 */
#ifndef CLRPERF_COLLECT_CPU_ACCOUNT_H
#define CLRPERF_COLLECT_CPU_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cpu_account;

/* From now on; of processes that are there. `kernel`: the time that they spend in the kernel, too. */
struct cpu_account *cpu_account_open(const pid_t *pids, size_t count, bool kernel);
void cpu_account_close(struct cpu_account *account);
/* Since then; of those that have ended meanwhile nothing is known. NULL: 0. */
uint64_t cpu_account_ns(const struct cpu_account *account);
/* Whether so little of what was used has samples that they mislead. */
bool cpu_account_is_gap(uint64_t used_ns, uint64_t sampled_ns);

#endif
