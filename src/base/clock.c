#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/own.h"

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts = { 0 };
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

uint64_t clock_own_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* What getrusage() says is that of whoever forked us, where that was larger. */
uint64_t clock_own_peak_rss_bytes(void)
{
    char line[128];
    uint64_t kib = 0;
    AUTO_STREAM FILE *file = fopen("/proc/self/status", "re");
    while (file && kib == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoull(line + 6, NULL, 10);
    struct rusage usage = { 0 };
    if (kib == 0 && getrusage(RUSAGE_SELF, &usage) == 0)
        kib = (uint64_t)usage.ru_maxrss;
    return kib * 1024;
}
