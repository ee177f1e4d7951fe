#include "base/lazy_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

enum {
    AT_ONCE_BYTES = 256 << 10, /* smaller parts are not worth a descriptor */
    DESCRIPTOR_MAX = 512,      /* those above it are left to others */
};

/* A descriptor of our own, or -1: the part is to be read at once. */
static int own_descriptor(const struct source *file, uint64_t size)
{
    int fd = file->fd >= 0 && size >= AT_ONCE_BYTES ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd <= DESCRIPTOR_MAX)
        return fd;
    close(fd);
    return -1;
}

/* Memory that is not there until it is written to, which calloc() does not promise. NULL: none is to be had.
 */
static uint8_t *reserve(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

/* So that pieces are read later. Where that is not worth it, or cannot be had, `lazy` stays as it was. */
static void open_for_later(struct lazy_bytes *lazy, const struct source *part)
{
    int fd = own_descriptor(part, lazy->size);
    uint8_t *bytes = fd >= 0 ? reserve(lazy->size) : NULL;
    if (!bytes) {
        if (fd >= 0)
            close(fd);
        return;
    }
    lazy->file = *part;
    lazy->file.fd = fd;
    lazy->bytes = bytes;
    lazy->is_read = mem_alloc(lazy->size / LAZY_PIECE_BYTES / 64 + 1, sizeof *lazy->is_read);
}

struct lazy_bytes *lazy_bytes_open(const struct source *file, uint64_t offset, uint64_t size,
                                   uint64_t ceiling, struct error *err)
{
    struct source part = source_part(file, offset, size);
    if (part.size != size) {
        error_set(err, ERROR_INPUT,
                  "%" PRIu64 " bytes wanted at offset %" PRIu64 ", but only %" PRIu64 " there", size, offset,
                  file->size);
        return NULL;
    }
    if (size > ceiling) {
        error_set(err, ERROR_LIMIT, "%" PRIu64 " bytes at offset %" PRIu64 " exceed the limit of %" PRIu64,
                  size, offset, ceiling);
        return NULL;
    }
    struct lazy_bytes *lazy = mem_alloc(1, sizeof *lazy);
    lazy->size = (size_t)size;
    open_for_later(lazy, &part);
    if (lazy->is_read)
        return lazy;
    lazy->bytes = mem_resize(NULL, lazy->size + 1, 1);
    if (source_read(&part, 0, lazy->bytes, lazy->size, err))
        return lazy;
    lazy_bytes_close(lazy);
    return NULL;
}

void lazy_bytes_close(struct lazy_bytes *lazy)
{
    if (!lazy)
        return;
    if (lazy->is_read) {
        munmap(lazy->bytes, lazy->size);
        close(lazy->file.fd);
    } else {
        free(lazy->bytes);
    }
    free(lazy->is_read);
    free(lazy);
}

void lazy_bytes_read(struct lazy_bytes *lazy, size_t first, size_t last)
{
    for (size_t piece = first; piece <= last; piece++) {
        size_t at = piece * LAZY_PIECE_BYTES, left = lazy->size - at;
        if (lazy->is_read[piece / 64] >> piece % 64 & 1)
            continue;
        lazy->is_read[piece / 64] |= 1ull << piece % 64;
        size_t size = left < LAZY_PIECE_BYTES ? left : LAZY_PIECE_BYTES;
        mem_bring_in(lazy->bytes + at, size);
        source_read(&lazy->file, at, lazy->bytes + at, size, NULL);
    }
}
