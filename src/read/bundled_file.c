#include "read/bundled_file.h"

#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/bundle.h"

int bundled_file_open(const char *path, path_open_fn *open, void *user)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path || !slash[1])
        return -1;
    AUTO_FREE char *program = mem_format("%.*s", (int)(slash - path), path);
    AUTO_FD int program_fd = open(user, program);
    struct source file;
    struct bundle *bundle;
    int fd = -1;
    if (program_fd < 0 || !source_over_fd(program_fd, 0, UINT64_MAX, &file, NULL) ||
        !bundle_open(&file, &bundle, NULL))
        return -1;
    const struct bundle_entry *entry = bundle_find_path(bundle, slash + 1);
    if (entry && !bundle_entry_copy(&file, entry, &fd, NULL))
        fd = -1;
    bundle_close(bundle);
    return fd;
}
