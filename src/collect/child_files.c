#include "collect/child_files.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

void child_files_close_but(int keep)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, keep + 1, UINT_MAX, 0) == 0) {
        if (keep > 0)
            syscall(SYS_close_range, 0, keep - 1, 0);
        return;
    }
#endif
    for (int fd = 0; fd < 4096; fd++)
        if (fd != keep)
            close(fd);
}
