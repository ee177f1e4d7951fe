#include "collect/target_runtime.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/memory_thread.h"
#include "base/own.h"
#include "base/source.h"
#include "base/target_root.h"
#include "clr/host_command.h"
#include "clr/module_name.h"
#include "collect/mapped_file.h"
#include "collect/process_mappings.h"

enum { THREADS_LOOKED_AT = 16 };
static const uint64_t IMAGE_BYTES_MAX = 1ull << 30;
/* Of all libraries of a process together; what is read of them has to be told in time. */
static const uint64_t LIBRARY_BYTES_MAX = 1ull << 28;

bool target_has_runtime_thread(pid_t pid, unsigned threads_max)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return false;
    bool found = false;
    unsigned looked_at = 0;
    for (struct dirent *entry; !found && looked_at < threads_max && (entry = readdir(tasks));) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        char name[64], comm[16];
        snprintf(name, sizeof name, "%.20s/comm", entry->d_name);
        AUTO_FD int fd = openat(dirfd(tasks), name, O_RDONLY | O_CLOEXEC);
        ssize_t got = fd < 0 ? -1 : read(fd, comm, sizeof comm);
        found = got > 5 && memcmp(comm, ".NET ", 5) == 0;
        looked_at++;
    }
    closedir(tasks);
    return found;
}

static char *copy_span(struct span text)
{
    if (text.size == 0 || text.size > TARGET_TEXT_MAX)
        return NULL;
    char *copy = mem_alloc(text.size + 1, 1);
    memcpy(copy, text.data, text.size);
    return copy;
}

static struct span base_name(struct span path)
{
    const uint8_t *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
    size_t taken = slash ? (size_t)(slash + 1 - path.data) : 0;
    return (struct span){ path.data + taken, path.size - taken };
}

static bool is_text(struct span a, const char *text)
{
    return span_equals(a, span_of(text, strlen(text)));
}

/* What the mappings of a process show. */
struct evidence {
    struct span exe_name;   /* file name of the executable */
    char *runtime;          /* path of libcoreclr.so or of Mono's library, or NULL. Owned, as the next one */
    char *exe_assembly;     /* EXE.dll, as an apphost loads it, or NULL */
    bool runtime_deleted;   /* it has that name no more */
    enum runtime_kind kind; /* of that */
    bool double_mapper;     /* jitted code lives in a memfd of that name */
    bool assemblies;        /* some .dll is mapped */
    bool any;
    uint64_t readable_addr;
};

static void take_runtime(struct evidence *e, enum runtime_kind kind, const struct proc_mapping *m)
{
    if (e->runtime)
        return;
    e->runtime = copy_span(m->path);
    e->runtime_deleted = m->deleted;
    e->kind = kind;
}

static bool look_at_mapping(void *user, const struct proc_mapping *m)
{
    struct evidence *e = user;
    e->any = true;
    if (!e->readable_addr && m->readable && m->inode)
        e->readable_addr = m->start;
    struct span name = base_name(m->path);
    if (name.size < 4)
        return true;
    if (is_text(name, "libcoreclr.so")) {
        take_runtime(e, RUNTIME_CORECLR, m);
    } else if (is_text(name, "libmonosgen-2.0.so") || is_text(name, "libmonosgen-2.0.so.1")) {
        take_runtime(e, RUNTIME_MONO, m);
    } else if (is_text(name, "memfd:doublemapper")) {
        e->double_mapper = true;
    } else if (memcmp(name.data + name.size - 4, ".dll", 4) == 0) {
        e->assemblies = true;
        if (!e->exe_assembly && e->exe_name.size && span_equals(module_simple_name(name), e->exe_name))
            e->exe_assembly = copy_span(m->path);
    }
    return true;
}

/* What is executable shows the runtime, and is an eighth of all; an apphost's assembly may have no code. */
static bool is_enough(const struct evidence *e)
{
    return e->runtime && (e->exe_assembly || is_text(e->exe_name, "dotnet"));
}

static void read_evidence(struct target *t, struct evidence *e)
{
    bool told = process_mappings_each(t->pid, MAPPINGS_EXECUTABLE, look_at_mapping, e, NULL);
    if (told && !is_enough(e))
        told = process_mappings_each(t->pid, MAPPINGS_OF_FILES, look_at_mapping, e, NULL);
    /* without rights, maps opens and tells nothing on some kernels, and refuses on others */
    t->maps_denied = !told || !e->any;
    t->some_addr = e->readable_addr;
}

static void evidence_done(struct evidence *e)
{
    free(e->runtime);
    free(e->exe_assembly);
}

/* The executable itself, by the link that leads to its inode and nowhere else. */
static void scan_executable(struct target *t, const char *exe)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)memory_thread_of(t->pid));
    AUTO_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct source file;
    enum runtime_kind kind;
    if (fd < 0 || !source_over_fd(fd, 0, IMAGE_BYTES_MAX, &file, NULL) ||
        !runtime_version_scan(&file, &kind, &t->version, NULL))
        return;
    t->runtime = kind;
    t->single_file = kind == RUNTIME_CORECLR;
    t->image = kind == RUNTIME_NONE ? NULL : mem_copy_string(exe);
}

/* What has the name of a deleted file now may be of another version. */
static bool open_runtime(const struct target *t, int root_fd, int *out_fd)
{
    struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR, .size_max = IMAGE_BYTES_MAX };
    char path[PATH_MAX];
    if (!t->image || !t->image_deleted)
        return t->image && root_fd >= 0 && target_root_open_path(root_fd, t->image, rules, out_fd, NULL);
    return (size_t)snprintf(path, sizeof path, "%s" PROCFS_DELETED, t->image) < sizeof path &&
           mapped_file_open(t->pid, path, rules, out_fd);
}

void target_find_version(struct target *t, int root_fd)
{
    if (t->runtime != RUNTIME_CORECLR || t->single_file || t->version.text[0])
        return;
    AUTO_FD int fd = -1;
    struct source file;
    enum runtime_kind kind;
    if (open_runtime(t, root_fd, &fd) && source_over_fd(fd, 0, IMAGE_BYTES_MAX, &file, NULL))
        runtime_version_scan(&file, &kind, &t->version, NULL);
}

struct library_search {
    struct target *target;
    int root_fd;
    uint64_t bytes; /* of the files looked into */
};

static bool look_into_library(void *user, const struct proc_mapping *m)
{
    struct library_search *s = user;
    struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR, .size_max = IMAGE_BYTES_MAX };
    AUTO_FREE char *path = m->inode && !m->deleted ? copy_span(m->path) : NULL;
    AUTO_FD int fd = -1;
    struct source file;
    struct runtime_version version;
    enum runtime_kind kind = RUNTIME_NONE;
    if (!path || !target_root_open_path(s->root_fd, path, rules, &fd, NULL) ||
        !source_over_fd(fd, 0, IMAGE_BYTES_MAX, &file, NULL))
        return true;
    s->bytes += file.size;
    if (s->bytes > LIBRARY_BYTES_MAX)
        return false;
    if (!runtime_version_scan(&file, &kind, &version, NULL) || kind != RUNTIME_NATIVEAOT)
        return true;
    s->target->runtime = kind;
    s->target->image = mem_copy_string(path);
    return false;
}

void target_find_library(struct target *t, int root_fd)
{
    struct library_search search = { .target = t, .root_fd = root_fd };
    if (t->runtime == RUNTIME_NONE && !t->maps_denied && t->threads > 1 && root_fd >= 0 &&
        target_has_runtime_thread(t->pid, THREADS_LOOKED_AT))
        process_mappings_each(t->pid, MAPPINGS_EXECUTABLE, look_into_library, &search, NULL);
}

static void find_entry_assembly(struct target *t, struct span cmdline, const char *exe,
                                const struct evidence *e)
{
    struct span exe_path = span_of(exe, strlen(exe));
    struct span path =
        e->exe_assembly ? span_of(e->exe_assembly, strlen(e->exe_assembly)) : (struct span){ 0 };
    if (is_text(e->exe_name, "dotnet") || (e->exe_name.size == 0 && strcmp(t->name, "dotnet") == 0)) {
        struct host_command command = host_command_read(cmdline);
        path = command.sdk_command ? span_of("dotnet.dll", 10) : command.assembly_path;
        t->sdk_tool = command.sdk_command;
    } else if (t->single_file || t->runtime == RUNTIME_NATIVEAOT) {
        path = exe_path;
    }
    /* without rights the executable is unknown, and the first argument says where it lies */
    t->sdk_tool |= host_path_in_sdk(path) || host_path_in_sdk(exe_path.size ? exe_path : cmdline);
    t->entry_assembly = copy_span(module_simple_name(path));
}

void target_find_runtime(struct target *t, struct span cmdline, const char *exe)
{
    struct evidence e = { .exe_name = base_name(span_of(exe, strlen(exe))) };
    read_evidence(t, &e);
    if (e.runtime) {
        t->runtime = e.kind;
        t->image = mem_copy_string(e.runtime);
        t->image_deleted = e.runtime_deleted;
        runtime_version_from_path(span_of(e.runtime, strlen(e.runtime)), &t->version);
    } else if (t->maps_denied) {
        t->runtime = target_has_runtime_thread(t->pid, THREADS_LOOKED_AT) ? RUNTIME_CORECLR : RUNTIME_NONE;
    } else if (t->threads > 1 &&
               (e.double_mapper || e.assemblies || target_has_runtime_thread(t->pid, THREADS_LOOKED_AT))) {
        scan_executable(t, exe);
    }
    if (t->runtime != RUNTIME_NONE)
        find_entry_assembly(t, cmdline, exe, &e);
    evidence_done(&e);
}
