/*
 * file_stamp: which state of which file something was read from.
 *
 * Another file that claims to be the same build has another one, and so has the same file once it was
 * written.
 */
#ifndef CLRPERF_BASE_FILE_STAMP_H
#define CLRPERF_BASE_FILE_STAMP_H

#include <stdint.h>

#include "base/buffer.h"

enum { FILE_STAMP_BYTES = 32 };

struct file_stamp {
    uint64_t device, inode, size_bytes;
    uint64_t changed_ns; /* st_ctime */
};

/* Of an open file; all 0 when it cannot be told. */
struct file_stamp file_stamp_of(int fd);
/* As four u64le, FILE_STAMP_BYTES. */
void file_stamp_append(const struct file_stamp *stamp, struct buffer *out);

#endif
