/*
 * Runs one command and says what it cost: `measure RESULT STDOUT COMMAND...` writes
 * "USER_US SYS_US WALL_NS PEAK_RSS_KB STATUS" to RESULT, and the command's output to STDOUT.
 *
 * It is small on purpose: the peak RSS the kernel reports of a child includes that of its parent at
 * the fork. The times are the child's and of all the children it waited for. An interrupt is the
 * command's business, not ours. Where we may, we get a CPU before others, and the command does not: how long
 * we wait for one when it has ended is no part of what it takes.
 */
#define _GNU_SOURCE /* SCHED_RESET_ON_FORK */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int run(char **command, const char *output)
{
    int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
        return 126;
    signal(SIGINT, SIG_DFL);
    execvp(command[0], command);
    perror(command[0]);
    return 127;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    signal(SIGINT, SIG_IGN);
    sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &(struct sched_param){ .sched_priority = 1 });
    uint64_t start = now_ns();
    pid_t pid = fork();
    if (pid < 0)
        return 2;
    if (pid == 0)
        _exit(run(argv + 3, argv[2]));
    struct rusage used;
    int status = 0;
    while (wait4(pid, &status, 0, &used) < 0)
        continue;
    uint64_t wall_ns = now_ns() - start;
    FILE *result = fopen(argv[1], "w");
    if (!result)
        return 2;
    fprintf(result, "%ld %ld %llu %ld %d\n", used.ru_utime.tv_sec * 1000000 + used.ru_utime.tv_usec,
            used.ru_stime.tv_sec * 1000000 + used.ru_stime.tv_usec, (unsigned long long)wall_ns,
            used.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return fclose(result) != 0;
}
