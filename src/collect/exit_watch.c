#include "collect/exit_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pidfd.h"
#include "collect/proc_file.h"
#include "read/procfs.h"

/* A number that was chosen can be another process's since. */
static bool is_chosen(pid_t pid, uint64_t chosen_ticks, struct error *err)
{
    uint64_t ticks;
    if (!chosen_ticks || !proc_file_start_ticks(pid, &ticks, NULL) || ticks == chosen_ticks)
        return true;
    return error_set(err, ERROR_TARGET, "process %d has ended, and another has its number", (int)pid);
}

bool exit_watch_chosen(struct exit_watch *x, const pid_t *pids, const uint64_t *start_ticks, size_t count,
                       struct error *err)
{
    *x = (struct exit_watch){ .chosen = mem_alloc(count, sizeof *x->chosen) };
    for (size_t i = 0; i < count; i++) {
        int fd = pidfd_of(pids[i]);
        if (fd >= 0 || errno != ESRCH) /* gone already: nothing to wait for */
            x->chosen[x->chosen_count++] = fd;
        if (!is_chosen(pids[i], start_ticks ? start_ticks[i] : 0, err))
            return false;
    }
    return true;
}

void exit_watch_done(struct exit_watch *x)
{
    for (size_t i = 0; i < x->chosen_count; i++)
        if (x->chosen[i] >= 0)
            close(x->chosen[i]);
    free(x->chosen);
    free(x->leaving);
    *x = (struct exit_watch){ 0 };
}

bool exit_watch_all_ended(const struct exit_watch *x)
{
    for (size_t i = 0; i < x->chosen_count; i++)
        if (!pidfd_has_ended(x->chosen[i]))
            return false;
    return true;
}

static struct exit_leaving *find(struct exit_watch *x, uint32_t process)
{
    for (size_t i = 0; i < x->leaving_count; i++)
        if (x->leaving[i].process == process)
            return &x->leaving[i];
    return NULL;
}

void exit_watch_main_thread(struct exit_watch *x, const struct exit_leaving *one)
{
    struct exit_leaving *there = find(x, one->process);
    if (!there) {
        x->leaving = mem_grow(x->leaving, &x->leaving_capacity, x->leaving_count + 1, sizeof *x->leaving);
        there = &x->leaving[x->leaving_count++];
    }
    *there = *one;
}

void exit_watch_thread(struct exit_watch *x, uint32_t process, uint64_t time_ns)
{
    struct exit_leaving *one = x->leaving_count ? find(x, process) : NULL;
    if (one)
        one->time_ns = time_ns;
}

/* What is left of a process until its parent asks for its exit code is one thread, a zombie. */
static bool has_ended(const struct exit_leaving *one)
{
    struct proc_stat stat;
    bool same = proc_file_stat((pid_t)one->pid, &stat, NULL) &&
                (!one->start_ticks || stat.start_ticks == one->start_ticks);
    return !same || stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1);
}

bool exit_watch_take_ended(struct exit_watch *x, struct exit_leaving *out)
{
    for (size_t i = 0; i < x->leaving_count; i++) {
        if (!has_ended(&x->leaving[i]))
            continue;
        *out = x->leaving[i];
        x->leaving[i] = x->leaving[--x->leaving_count];
        return true;
    }
    return false;
}
