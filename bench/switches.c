/*
 * Two threads on one CPU that hand a byte to and fro, each 24 frames deep: what a context switch costs (row
 * U3). switches MILLISECONDS Says "ready PID", waits for a line on stdin, and prints SWITCHES
 * CPU_NANOSECONDS_EACH. CPU time of the process, so what others do on the machine is not in it; what a tracer
 * does at a switch is.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 24, PIPES = 2, REST_US = 300 };

static int pipes[PIPES][2];

static double clock_s(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Until a zero byte comes, which is passed on. */
static __attribute__((noinline)) int echo(int in, int out, double until_s)
{
    char byte = 1;
    while (byte && read(in, &byte, 1) == 1) {
        if (until_s > 0) {
            usleep(REST_US);
            byte = clock_s(CLOCK_MONOTONIC) < until_s;
        }
        if (write(out, &byte, 1) != 1)
            return 1;
    }
    return 0;
}

static __attribute__((noinline)) int deep(int depth, int in, int out, double until_s)
{
    volatile char room[96] = { (char)depth };
    int failed = depth ? deep(depth - 1, in, out, until_s) : echo(in, out, until_s);
    return failed + room[1];
}

static void *other(void *unused)
{
    (void)unused;
    deep(DEPTH, pipes[0][0], pipes[1][1], 0);
    return NULL;
}

static long switches(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw + used.ru_nivcsw;
}

int main(int argc, char **argv)
{
    double run_s = argc > 1 ? strtod(argv[1], NULL) / 1e3 : 1;
    cpu_set_t one;
    pthread_t thread;
    char byte = 1;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (sched_setaffinity(0, sizeof one, &one) || pipe(pipes[0]) || pipe(pipes[1]) ||
        pthread_create(&thread, NULL, other, NULL))
        return 1;
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    long before = switches();
    double cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    if (write(pipes[0][1], &byte, 1) != 1 ||
        deep(DEPTH, pipes[1][0], pipes[0][1], clock_s(CLOCK_MONOTONIC) + run_s))
        return 1;
    cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
    long count = switches() - before;
    printf("%ld %.1f\n", count, count ? cpu_s * 1e9 / (double)count : 0);
    return 0;
}
