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

bool fd_write_failed(struct error *err, int os_error, bool any, const char *what)
{
    bool is_full = os_error == ENOSPC || os_error == EDQUOT;
    error_system(err, os_error, "%s", what);
    return error_hint(err, "%s; %s", any ? "what was written before is readable" : "nothing was written",
                      is_full ? "free some space, or record to another place" : "record to another place");
}
