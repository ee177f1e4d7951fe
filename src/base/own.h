/*
 * own: cleanup attributes, so that a local that owns something gives it back on every way out.
 *
 * Handing over is explicit: `*out_fd = take_fd(&fd)`.
 */
#ifndef CLRPERF_BASE_OWN_H
#define CLRPERF_BASE_OWN_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void own_close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void own_free(void *slot)
{
    free(*(void **)slot);
}

static inline void own_close_stream(FILE **stream)
{
    if (*stream)
        fclose(*stream);
}

#define AUTO_FD     __attribute__((cleanup(own_close_fd)))
#define AUTO_FREE   __attribute__((cleanup(own_free)))
#define AUTO_STREAM __attribute__((cleanup(own_close_stream)))

static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
