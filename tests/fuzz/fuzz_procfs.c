#include <stddef.h>
#include <stdint.h>

#include "read/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = { data, size };
    struct proc_stat stat;
    procfs_read_stat(text, &stat, NULL);
    struct proc_status status;
    procfs_read_status(text, &status, NULL);
    struct buffer path;
    buffer_init(&path, 4096);
    struct proc_mapping mapping;
    for (struct span rest = text; procfs_next_mapping(&rest, &mapping, NULL);) {
        buffer_clear(&path);
        procfs_unescape(mapping.path, &path);
    }
    buffer_done(&path);
    struct span found;
    procfs_environ_find(text, "TMPDIR", &found);
    for (struct span rest = text; procfs_next_argument(&rest, &found);)
        ;
    procfs_container_id(procfs_cgroup_path(text));
    return 0;
}
