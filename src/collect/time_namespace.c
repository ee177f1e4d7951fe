#include "collect/time_namespace.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory_thread.h"
#include "base/own.h"

static const int64_t ns_per_second = 1000000000;

/* Lines of "CLOCK SECONDS NANOSECONDS", against the machine's own clocks. */
static struct time_offsets read_offsets(const char *path)
{
    struct time_offsets offsets = { 0 };
    AUTO_STREAM FILE *file = fopen(path, "re");
    char line[128], clock[32];
    long long seconds, ns;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%31s %lld %lld", clock, &seconds, &ns) != 3 || seconds > INT32_MAX ||
            seconds < INT32_MIN)
            continue;
        if (strcmp(clock, "monotonic") == 0)
            offsets.monotonic_ns = seconds * ns_per_second + ns;
        else if (strcmp(clock, "boottime") == 0)
            offsets.boottime_ns = seconds * ns_per_second + ns;
    }
    return offsets;
}

struct time_offsets time_namespace_offsets(pid_t pid)
{
    char path[64];
    struct stat own, theirs;
    snprintf(path, sizeof path, "/proc/%d/ns/time", (int)memory_thread_of(pid));
    if (stat(path, &theirs) < 0 || stat("/proc/self/ns/time", &own) < 0 || own.st_ino == theirs.st_ino)
        return (struct time_offsets){ 0 };
    snprintf(path, sizeof path, "/proc/%d/timens_offsets", (int)pid);
    struct time_offsets offsets = read_offsets(path);
    struct time_offsets ours = read_offsets("/proc/self/timens_offsets");
    offsets.monotonic_ns -= ours.monotonic_ns;
    offsets.boottime_ns -= ours.boottime_ns;
    return offsets;
}

uint64_t time_namespace_start_ticks(pid_t pid, uint64_t start_ticks)
{
    int64_t ns_per_tick = ns_per_second / sysconf(_SC_CLK_TCK);
    return start_ticks + (uint64_t)(time_namespace_offsets(pid).boottime_ns / ns_per_tick);
}
