#include "base/file_stamp.h"

#include <sys/stat.h>

struct file_stamp file_stamp_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return (struct file_stamp){ 0 };
    return (struct file_stamp){
        .device = st.st_dev,
        .inode = st.st_ino,
        .size_bytes = (uint64_t)st.st_size,
        .changed_ns = (uint64_t)st.st_ctim.tv_sec * UINT64_C(1000000000) + (uint64_t)st.st_ctim.tv_nsec,
    };
}

void file_stamp_append(const struct file_stamp *stamp, struct buffer *out)
{
    buffer_u64le(out, stamp->device);
    buffer_u64le(out, stamp->inode);
    buffer_u64le(out, stamp->size_bytes);
    buffer_u64le(out, stamp->changed_ns);
}
