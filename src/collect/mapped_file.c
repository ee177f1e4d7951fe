#include "collect/mapped_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/proc_file.h"
#include "collect/process_mappings.h"

enum {
    PATH_BYTES_MAX = 4096 + sizeof PROCFS_DELETED,
    LINK_BYTES = 64,
};

struct search {
    struct span path;
    char *link; /* LINK_BYTES */
    bool found;
};

static bool take_if_deleted(void *user, const struct proc_mapping *m)
{
    struct search *s = user;
    s->found = m->deleted && span_equals(m->path, s->path);
    if (s->found)
        snprintf(s->link, LINK_BYTES, "map_files/%" PRIx64 "-%" PRIx64, m->start, m->end);
    return !s->found;
}

static bool find_mapping(pid_t pid, struct span path, char link[LINK_BYTES])
{
    struct search search = { .path = path, .link = link };
    process_mappings_each(pid, MAPPINGS_OF_FILES, take_if_deleted, &search, NULL);
    return search.found;
}

static bool is_executable(pid_t pid, const char *deleted_path)
{
    char target[PATH_BYTES_MAX];
    return proc_file_link(pid, "exe", target, sizeof target, NULL) && strcmp(target, deleted_path) == 0;
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
