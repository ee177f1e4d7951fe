#include "collect/target_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "collect/target_signs.h"

enum { PROCESSES_MAX = 32768 };

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
    buffer_init(&scratch, TARGET_SIGNS_BYTES_MAX);
    for (struct dirent *entry; list.count < PROCESSES_MAX && (entry = readdir(proc));) {
        uint64_t pid;
        struct target t;
        if (!units_parse_count(entry->d_name, &pid) || pid > INT32_MAX ||
            !target_may_be_dotnet((pid_t)pid, &scratch) || !target_open((pid_t)pid, &t, NULL))
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
