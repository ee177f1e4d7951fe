/*
 * fd_write: writes bytes to a descriptor that blocks, all of them.
 */
#ifndef CLRPERF_BASE_FD_WRITE_H
#define CLRPERF_BASE_FD_WRITE_H

#include <stdbool.h>

#include "base/cursor.h"

/* False with errno when they could not all be written. */
bool fd_write(int fd, struct span bytes);

#endif
