#include "collect/cpu_account.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"
#include "collect/proc_file.h"

enum {
    GAP_AT_LEAST_MS = 100, /* that have no samples; the account is kept in ticks of 10 ms */
    GAP_PERCENT = 30,      /* user and kernel time are told apart by those ticks only */
    GAP_PERCENT_ALL = 10,  /* of both, where each CPU has its clock */
};

struct share {
    pid_t pid;
    uint64_t start_ticks, begin_ns;
};

struct cpu_account {
    struct cpu_account_scope scope;
    size_t count;
    struct share shares[];
};

static bool read_share(pid_t pid, struct cpu_account_scope scope, struct share *out)
{
    struct proc_stat stat;
    if (!proc_file_stat(pid, &stat, NULL))
        return false;
    uint64_t ticks = stat.user_ticks + (scope.kernel ? stat.system_ticks : 0);
    if (scope.children)
        ticks += stat.child_user_ticks + (scope.kernel ? stat.child_system_ticks : 0);
    uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    *out = (struct share){ .pid = pid, .start_ticks = stat.start_ticks, .begin_ns = ticks * tick_ns };
    return true;
}

struct cpu_account *cpu_account_open(const pid_t *pids, size_t count, struct cpu_account_scope scope)
{
    struct cpu_account *account = mem_alloc(1, sizeof *account + count * sizeof *account->shares);
    account->scope = scope;
    for (size_t i = 0; i < count; i++)
        account->count += read_share(pids[i], scope, &account->shares[account->count]);
    return account;
}

void cpu_account_close(struct cpu_account *account)
{
    free(account);
}

uint64_t cpu_account_ns(const struct cpu_account *account)
{
    uint64_t sum_ns = 0;
    for (size_t i = 0; account && i < account->count; i++) {
        const struct share *begin = &account->shares[i];
        struct share now;
        if (read_share(begin->pid, account->scope, &now) && now.start_ticks == begin->start_ticks &&
            now.begin_ns > begin->begin_ns)
            sum_ns += now.begin_ns - begin->begin_ns;
    }
    return sum_ns;
}

bool cpu_account_is_gap(const struct cpu_account *account, uint64_t used_ns, uint64_t sampled_ns)
{
    if (!account)
        return false;
    uint64_t gap_ns = used_ns > sampled_ns ? used_ns - sampled_ns : 0;
    uint64_t percent = account->scope.all_cpus && account->scope.kernel ? GAP_PERCENT_ALL : GAP_PERCENT;
    return gap_ns >= GAP_AT_LEAST_MS * UINT64_C(1000000) && gap_ns > used_ns / 100 * percent;
}

static const char *gap_cause(struct cpu_account_scope scope)
{
    if (scope.all_cpus)
        return "the kernel's clock could not keep up with the rate, or the machine was taken away from it";
    if (scope.children)
        return "where we may not watch new processes each thread has a clock of its own on each CPU, and "
               "threads that run briefly have few samples or none";
    return "without CAP_PERFMON each thread has a clock of its own on each CPU, and threads that run briefly "
           "have few samples or none";
}

static const char *gap_fix(struct cpu_account_scope scope)
{
    if (scope.all_cpus)
        return "a lower -F";
    if (scope.children)
        return "run with sudo, and not in a container; a higher -F sees more";
    return "run with sudo, or sudo setcap cap_perfmon,cap_sys_ptrace=ep on clrperf; a higher -F sees more";
}

void cpu_account_tell_gap(const struct cpu_account *account, uint64_t used_ns, uint64_t sampled_ns, char *out,
                          size_t out_size)
{
    snprintf(out, out_size, "samples stand for %s of the %s of CPU time that were used - %s - fix: %s",
             sampled_ns ? units_duration(sampled_ns).text : "nothing", units_duration(used_ns).text,
             gap_cause(account->scope), gap_fix(account->scope));
}
