#include "base/memory_thread.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The name of its executable is what costs least of all that a thread without memory has not. */
static bool has_memory(pid_t tid)
{
    char path[32], first;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)tid);
    return readlink(path, &first, 1) >= 0 || (errno != ENOENT && errno != ESRCH);
}

pid_t memory_thread_of(pid_t pid)
{
    char folder[32];
    pid_t found = 0;
    if (has_memory(pid))
        return pid;
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(folder);
    for (struct dirent *entry; threads && !found && (entry = readdir(threads));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && tid != pid && has_memory(tid))
            found = tid;
    }
    if (threads)
        closedir(threads);
    return found ? found : pid;
}
