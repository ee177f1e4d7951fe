#include "live_code.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/procfs.h"

enum { MAPS_BYTES_MAX = 16 << 20 };

static bool open_image(void *user, uint32_t image, struct source *out)
{
    const struct live_code *live = user;
    if (image >= live->file_count)
        return false;
    if (strcmp(live->files[image], "[vdso]") == 0)
        return unwind_vdso(out);
    AUTO_FREE char *path = mem_format("/proc/%d/root%s", (int)live->pid, live->files[image]);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && source_over_fd(fd, 0, UINT64_MAX, out, NULL);
}

static void close_image(void *user, struct source *file)
{
    (void)user;
    if (file->fd >= 0)
        close(file->fd);
}

bool live_code_read(void *user, uint64_t addr, void *into, size_t size)
{
    const struct live_code *live = user;
    struct iovec local = { into, size }, remote = { (void *)(uintptr_t)addr, size };
    return process_vm_readv(live->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static uint32_t file_number(struct live_code *live, struct span path)
{
    if (path.size == 0 || (path.data[0] != '/' && !span_equals(path, span_of("[vdso]", 6))) ||
        (path.size > 7 && memcmp(path.data, "/memfd:", 7) == 0) || (path.size > 1 && path.data[1] == '/'))
        return PROCESS_CODE_NO_IMAGE;
    for (size_t i = 1; i < live->file_count; i++)
        if (span_equals(path, span_of(live->files[i], strlen(live->files[i]))))
            return (uint32_t)i;
    live->files = mem_grow(live->files, &live->file_capacity, live->file_count + 1, sizeof *live->files);
    live->files[live->file_count] = mem_format("%.*s", (int)path.size, (const char *)path.data);
    return (uint32_t)live->file_count++;
}

void live_code_map(struct live_code *live, uint64_t start, uint64_t size_bytes, uint64_t file_off,
                   struct span path)
{
    process_code_map(live->code, start, size_bytes, file_off, file_number(live, path));
}

bool live_code_scan(struct live_code *live)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/maps", (int)live->pid);
    AUTO_STREAM FILE *file = fopen(name, "re");
    if (!file)
        return false;
    AUTO_FREE char *text = mem_alloc(1, MAPS_BYTES_MAX);
    struct span rest = span_of(text, fread(text, 1, MAPS_BYTES_MAX, file));
    struct proc_mapping m;
    while (procfs_next_mapping(&rest, &m, NULL))
        if (m.executable)
            live_code_map(live, m.start, m.end - m.start, m.file_off, m.path);
    return true;
}

static void refresh(void *user)
{
    live_code_scan(user);
}

bool live_code_open(struct live_code *live, pid_t pid, bool (*find_method)(void *live, uint64_t addr))
{
    live->pid = pid;
    live->files = mem_grow(NULL, &live->file_capacity, 1, sizeof *live->files);
    live->files[0] = mem_copy_string("");
    live->file_count = 1;
    live->images = unwind_images_new();
    live->code = process_code_new(live->images, &(struct process_code_access){ .machine = machine_own(),
                                                                               .open = open_image,
                                                                               .close = close_image,
                                                                               .read = live_code_read,
                                                                               .refresh = refresh,
                                                                               .find_method = find_method,
                                                                               .user = live });
    return live_code_scan(live);
}

void live_code_close(struct live_code *live)
{
    process_code_free(live->code);
    unwind_images_free(live->images);
    while (live->file_count)
        free(live->files[--live->file_count]);
    free(live->files);
}
