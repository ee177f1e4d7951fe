#include "base/fd_write.h"

#include <errno.h>
#include <unistd.h>

bool fd_write(int fd, struct span bytes)
{
    while (bytes.size) {
        ssize_t written = write(fd, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            errno = written < 0 ? errno : EIO;
            return false;
        }
        bytes.data += written;
        bytes.size -= (size_t)written;
    }
    return true;
}
