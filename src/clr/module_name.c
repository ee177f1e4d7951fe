#include "clr/module_name.h"

#include <strings.h>

#include "read/procfs.h"

enum { ENDING_BYTES = 4 };

bool module_path_is_assembly(struct span path)
{
    if (path.size <= ENDING_BYTES)
        return false;
    const char *ending = (const char *)path.data + path.size - ENDING_BYTES;
    return strncasecmp(ending, ".dll", ENDING_BYTES) == 0 || strncasecmp(ending, ".exe", ENDING_BYTES) == 0;
}

struct span module_simple_name(struct span path)
{
    procfs_take_deleted(&path);
    size_t from = path.size;
    while (from && path.data[from - 1] != '/' && path.data[from - 1] != '\\')
        from--;
    struct span name = span_part(path, from, path.size - from);
    if (module_path_is_assembly(name))
        name.size -= ENDING_BYTES;
    return name;
}
