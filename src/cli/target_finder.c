#include "cli/target_finder.h"

#include <fcntl.h>

#include "base/own.h"
#include "base/target_root.h"
#include "read/bundled_file.h"

static int open_live(void *user, uint32_t process, const char *path)
{
    return target_files_open(user, process, path);
}

static int open_live_jit(void *user, uint32_t process, bool jitdump, const char *path, struct error *err)
{
    return target_files_open_jit(user, process, jitdump, path, err);
}

static void read_live(void *user, uint32_t process, const uint64_t *addrs, size_t count, size_t size,
                      uint8_t *into, uint32_t *got)
{
    target_files_read_memory(user, process, addrs, count, size, into, got);
}

struct file_finder target_finder_live(const struct target_files *files)
{
    return (struct file_finder){ open_live, open_live_jit, read_live, (void *)files };
}

static int open_core(void *user, uint32_t process, const char *path)
{
    (void)process;
    return core_target_open_file(user, path);
}

static void read_core(void *user, uint32_t process, const uint64_t *addrs, size_t count, size_t size,
                      uint8_t *into, uint32_t *got)
{
    const struct core_target *core = user;
    (void)process;
    for (size_t i = 0; i < count; i++) {
        struct memory_piece piece = { .addr = addrs[i], .into = into + i * size, .size = size };
        core->memory.read(core->memory.user, &piece, 1);
        got[i] = (uint32_t)piece.got;
    }
}

struct file_finder target_finder_core(struct core_target *core)
{
    return (struct file_finder){ open_core, NULL, read_core, core };
}

static int open_here(void *user, const char *path)
{
    struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR };
    AUTO_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd;
    (void)user;
    return root >= 0 && target_root_open_path(root, path, rules, &fd, NULL) ? fd : -1;
}

int target_finder_open_here(const char *path)
{
    int fd = open_here(NULL, path);
    return fd >= 0 ? fd : bundled_file_open(path, open_here, NULL);
}
