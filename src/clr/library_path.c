#include "clr/library_path.h"

#include <string.h>

bool library_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *so = strstr(slash ? slash : path, ".so");
    while (so && so[3] && so[3] != '.')
        so = strstr(so + 3, ".so");
    return so;
}
