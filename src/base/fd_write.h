/*
 * fd_write: writes bytes to a descriptor that blocks, all of them, or says what became of them.
 */
#ifndef CLRPERF_BASE_FD_WRITE_H
#define CLRPERF_BASE_FD_WRITE_H

#include <stdbool.h>

#include "base/cursor.h"
#include "base/error.h"

/* False with errno when they could not all be written. */
bool fd_write(int fd, struct span bytes);
/* Of a recording that could not be written on, `any` of it was before: what is left of it, and what to do. */
bool fd_write_failed(struct error *err, int os_error, bool any, const char *what);

#endif
