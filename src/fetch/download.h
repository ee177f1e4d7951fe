/*
 * download: gets the content of one URL at a time into a file.
 *
 * By libcurl, which is loaded when the first download is asked for: the other verbs start without it and the
 * thirty libraries it brings. Only http and https, also behind redirects. The server is a stranger: the time,
 * the size, the redirects and a standstill have limits.
 */
#ifndef CLRPERF_FETCH_DOWNLOAD_H
#define CLRPERF_FETCH_DOWNLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct downloads;

struct download_limits {
    uint64_t bytes_max;
    uint64_t duration_ms;
    uint32_t stall_s;   /* it ends when for so long less than 1 KiB/s came */
    uint32_t redirects; /* so many are followed; none from https to http */
};

enum download_end {
    DOWNLOAD_DONE,
    DOWNLOAD_ABSENT,  /* the server does not have it */
    DOWNLOAD_FAILED,  /* the error says what */
    DOWNLOAD_STOPPED, /* by `go_on` */
};

/* Asked several times a second; `total` is 0 when the server does not tell. False stops. */
typedef bool download_progress_fn(void *user, uint64_t done_bytes, uint64_t total_bytes);

/* ERROR_UNSUPPORTED when there is no libcurl. The caller ends with downloads_close(). */
bool downloads_open(const struct download_limits *limits, struct downloads **out, struct error *err);
void downloads_close(struct downloads *downloads);
/* Replaces the content of the file. Connections to a server are kept for the next one. */
enum download_end downloads_get(struct downloads *downloads, const char *url, int fd,
                                download_progress_fn *go_on, void *user, struct error *err);

#endif
