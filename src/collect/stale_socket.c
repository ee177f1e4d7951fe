#include "collect/stale_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/units.h"
#include "collect/proc_file.h"
#include "collect/socket_name.h"
#include "collect/time_namespace.h"
#include "read/procfs.h"

enum { PROC_BYTES_MAX = 1 << 16, SOCKETS_MAX = 65536 };

/* When which process started: what makes a socket alive. */
struct start {
    pid_t pid;
    uint64_t ticks; /* as the process sees it, which is what its socket's name has */
};

struct starts {
    struct start *items;
    size_t count, capacity;
};

static void read_starts(struct starts *starts, struct buffer *scratch)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    for (struct dirent *entry; (entry = readdir(proc));) {
        uint64_t pid;
        struct proc_stat stat;
        if (!units_parse_count(entry->d_name, &pid) || pid > INT32_MAX ||
            !proc_file_read((pid_t)pid, "stat", scratch, NULL) ||
            !procfs_read_stat(buffer_span(scratch), &stat, NULL))
            continue;
        starts->items = mem_grow(starts->items, &starts->capacity, starts->count + 1, sizeof *starts->items);
        starts->items[starts->count++] = (struct start){
            (pid_t)pid,
            time_namespace_start_ticks((pid_t)pid, stat.start_ticks),
        };
    }
    closedir(proc);
}

static bool is_alive(const struct starts *starts, const struct stale_socket *s, struct buffer *scratch)
{
    struct proc_status status;
    for (size_t i = 0; i < starts->count; i++) {
        const struct start *start = &starts->items[i];
        if ((start->ticks == s->start_ticks || s->start_ticks == 0) &&
            (start->pid == s->pid ||
             (proc_file_read(start->pid, "status", scratch, NULL) &&
              procfs_read_status(buffer_span(scratch), &status, NULL) && status.ns_pid == s->pid)))
            return true;
    }
    return false;
}

static bool pid_in_use(const struct starts *starts, pid_t pid)
{
    for (size_t i = 0; i < starts->count; i++) {
        if (starts->items[i].pid == pid)
            return true;
    }
    return false;
}

static void look_at_entry(int dir, const char *folder, const char *name, const struct starts *starts,
                          struct buffer *scratch, struct stale_socket_list *list)
{
    struct stale_socket s = { 0 };
    struct stat st;
    if (!socket_name_read(name, &s.pid, &s.start_ticks) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISSOCK(st.st_mode) || is_alive(starts, &s, scratch))
        return;
    s.path = mem_format("%s/%s", folder, name);
    s.owner = st.st_uid;
    s.modified_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    s.pid_reused = pid_in_use(starts, s.pid);
    list->items = mem_grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = s;
}

bool stale_socket_list_read(const char *folder, struct stale_socket_list *out, struct error *err)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return error_system(err, errno, "cannot list '%s'", folder);
    struct starts starts = { 0 };
    struct stale_socket_list list = { 0 };
    struct buffer scratch;
    buffer_init(&scratch, PROC_BYTES_MAX);
    read_starts(&starts, &scratch);
    for (struct dirent *entry; list.count < SOCKETS_MAX && (entry = readdir(dir));)
        look_at_entry(dirfd(dir), folder, entry->d_name, &starts, &scratch, &list);
    closedir(dir);
    buffer_done(&scratch);
    free(starts.items);
    *out = list;
    return true;
}

void stale_socket_list_done(struct stale_socket_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (struct stale_socket_list){ 0 };
}
