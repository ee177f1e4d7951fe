#include "collect/target_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "collect/proc_file.h"
#include "collect/target_runtime.h"

enum { MAPS_BYTES_MAX = 32 << 20, PROCESSES_MAX = 32768, EARLY_THREADS = 4, THREADS_MAX = 16 };

void target_list_add(struct target_list *list, struct target *t)
{
    list->items = mem_grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = *t;
    *t = (struct target){ .pidfd = -1 };
}

void target_list_done(struct target_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        target_done(&list->items[i]);
    free(list->items);
    *list = (struct target_list){ 0 };
}

/*
 * Threads of a process without reading any text: the kernel gives the folder of its threads as many links,
 * and the two of every folder.
 */
static unsigned count_threads(int proc_fd, pid_t pid)
{
    char name[32];
    struct stat st;
    snprintf(name, sizeof name, "%d/task", (int)pid);
    return fstatat(proc_fd, name, &st, 0) == 0 && st.st_nlink > 2 ? (unsigned)st.st_nlink - 2 : 0;
}

/*
 * A cheap look that most processes do not pass, so that listing a machine takes milliseconds: a runtime has
 * several threads, and what it maps has telling names.
 */
static bool may_be_dotnet(int proc_fd, pid_t pid, struct buffer *scratch)
{
    static const char *const signs[] = { "/libcoreclr.so", "/memfd:doublemapper",
                                         "/System.Private.CoreLib.dll", "/libmonosgen-2.0.so" };
    if (count_threads(proc_fd, pid) < 2)
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

static int by_pid(const void *a, const void *b)
{
    const struct target *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

bool target_list_read(struct target_list *out, struct error *err)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return error_system(err, errno, "cannot list /proc");
    struct target_list list = { 0 };
    struct buffer scratch;
    buffer_init(&scratch, MAPS_BYTES_MAX);
    for (struct dirent *entry; list.count < PROCESSES_MAX && (entry = readdir(proc));) {
        uint64_t pid;
        struct target t;
        if (!units_parse_count(entry->d_name, &pid) || pid > INT32_MAX ||
            !may_be_dotnet(dirfd(proc), (pid_t)pid, &scratch) || !target_open((pid_t)pid, &t, NULL))
            continue;
        if (t.runtime == RUNTIME_NONE)
            target_done(&t);
        else
            target_list_add(&list, &t);
    }
    closedir(proc);
    buffer_done(&scratch);
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, by_pid);
    *out = list;
    return true;
}
