#include "collect/target_signs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "collect/proc_file.h"
#include "collect/target_runtime.h"

enum { EARLY_THREADS = 4, THREADS_MAX = 16 };

/*
 * Threads of a process without reading any text: the kernel gives the folder of its threads as many links,
 * and the two of every folder.
 */
static unsigned count_threads(pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return stat(path, &st) == 0 && st.st_nlink > 2 ? (unsigned)st.st_nlink - 2 : 0;
}

bool target_may_be_dotnet(pid_t pid, struct buffer *scratch)
{
    static const char *const signs[] = { "/libcoreclr.so", "/memfd:doublemapper",
                                         "/System.Private.CoreLib.dll", "/libmonosgen-2.0.so" };
    if (count_threads(pid) < 2)
        return false;
    /* the runtime starts its own threads right after the first one, and a name costs less than the mappings
     */
    if (target_has_runtime_thread(pid, EARLY_THREADS))
        return true;
    if (proc_file_read(pid, "maps", scratch, NULL)) {
        for (size_t i = 0; i < ARRAY_LEN(signs) && scratch->size; i++) {
            if (memmem(scratch->data, scratch->size, signs[i], strlen(signs[i])))
                return true;
        }
    }
    return target_has_runtime_thread(pid, THREADS_MAX);
}
