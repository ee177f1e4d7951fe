#include "collect/mapped_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/proc_file.h"
#include "read/procfs.h"

enum {
    MAPS_BYTES_MAX = 64 << 20,
    PATH_BYTES_MAX = 4096 + sizeof PROCFS_DELETED,
    LINK_BYTES = 64,
};

static bool find_mapping(pid_t pid, struct span path, char link[LINK_BYTES])
{
    struct buffer text, name;
    struct proc_mapping m;
    bool found = false;
    buffer_init(&text, MAPS_BYTES_MAX);
    buffer_init(&name, PATH_BYTES_MAX);
    struct span rest = proc_file_read(pid, "maps", &text, NULL) ? buffer_span(&text) : (struct span){ 0 };
    while (!found && procfs_next_mapping(&rest, &m, NULL)) {
        buffer_clear(&name);
        procfs_unescape(m.path, &name);
        found = m.deleted && span_equals(buffer_span(&name), path);
    }
    if (found)
        snprintf(link, LINK_BYTES, "map_files/%" PRIx64 "-%" PRIx64, m.start, m.end);
    buffer_done(&text);
    buffer_done(&name);
    return found;
}

static bool is_executable(pid_t pid, const char *deleted_path)
{
    char link[32], target[PATH_BYTES_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t size = readlink(link, target, sizeof target);
    return size >= 0 &&
           span_equals(span_of(target, (size_t)size), span_of(deleted_path, strlen(deleted_path)));
}

bool mapped_file_open(pid_t pid, const char *deleted_path, struct target_file_rules rules, int *out_fd)
{
    char link[LINK_BYTES] = "exe";
    size_t size = strlen(deleted_path), suffix = strlen(PROCFS_DELETED);
    if (size <= suffix)
        return false;
    return (is_executable(pid, deleted_path) ||
            find_mapping(pid, span_of(deleted_path, size - suffix), link)) &&
           target_root_open_link(pid, link, rules, out_fd, NULL);
}
