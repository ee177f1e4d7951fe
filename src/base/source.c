#include "base/source.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool source_over_fd(int fd, uint64_t start, uint64_t size, struct source *out, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_system(err, errno, "cannot stat an open file");
    uint64_t file_size = st.st_size < 0 ? 0 : (uint64_t)st.st_size;
    uint64_t room = start < file_size ? file_size - start : 0;
    *out = (struct source){ .fd = fd, .start = start, .size = size < room ? size : room };
    return true;
}

struct source source_over_span(struct span bytes)
{
    return (struct source){ .fd = -1, .size = bytes.size, .memory = bytes };
}

struct source source_part(const struct source *whole, uint64_t start, uint64_t size)
{
    struct source part = *whole;
    uint64_t room = start < whole->size ? whole->size - start : 0;
    part.size = size < room ? size : room;
    part.start += start < whole->size ? start : whole->size;
    return part;
}

bool source_read(const struct source *s, uint64_t offset, void *into, size_t size, struct error *err)
{
    if (offset > s->size || size > s->size - offset)
        return error_set(err, ERROR_INPUT,
                         "%zu bytes wanted at offset %" PRIu64 ", but only %" PRIu64 " there", size, offset,
                         s->size);
    if (s->fd < 0) {
        if (size)
            memcpy(into, s->memory.data + s->start + offset, size);
        return true;
    }
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(s->fd, (uint8_t *)into + done, size - done, (off_t)(s->start + offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_system(err, errno, "cannot read %zu bytes at offset %" PRIu64, size, offset);
        if (got == 0)
            return error_set(err, ERROR_INPUT,
                             "the file became shorter while it was read (offset %" PRIu64 ")", offset + done);
        done += (size_t)got;
    }
    return true;
}

bool source_load(const struct source *s, uint64_t offset, uint64_t size, struct buffer *out,
                 struct error *err)
{
    if (offset > s->size || size > s->size - offset)
        return error_set(err, ERROR_INPUT,
                         "%" PRIu64 " bytes wanted at offset %" PRIu64 ", but only %" PRIu64 " there", size,
                         offset, s->size);
    buffer_clear(out);
    if (size > out->ceiling)
        return error_set(err, ERROR_LIMIT, "%" PRIu64 " bytes at offset %" PRIu64 " exceed the limit of %zu",
                         size, offset, out->ceiling);
    if (size == 0)
        return true;
    uint8_t *room = buffer_reserve(out, (size_t)size);
    if (!room || !source_read(s, offset, room, (size_t)size, err))
        return false;
    out->size = (size_t)size;
    return true;
}
