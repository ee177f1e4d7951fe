#include "base/pidfd.h"

#include <errno.h>
#include <poll.h>

bool pidfd_has_ended(int pidfd)
{
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    int ready;
    do /* also of no time at all poll(2) may say EINTR */
        ready = poll(&end, 1, 0);
    while (ready < 0 && errno == EINTR);
    return ready != 0;
}
