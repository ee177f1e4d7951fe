#include "symbolize/kept_index.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fd_write.h"
#include "base/file_stamp.h"
#include "base/own.h"

static const char magic[] = "clindex\n";

enum {
    IDENTITY_BYTES = 8 + 2 * FILE_STAMP_BYTES + 8,
    HEAD_BYTES = IDENTITY_BYTES + 8,
    IMAGE_BYTES_MIN = 2 << 20
};

/* What the bytes are of, and who made them: another build of ours may have found out something else. */
static bool identify(const struct source *image, uint8_t out[IDENTITY_BYTES])
{
    AUTO_FD int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct buffer bytes;
    if (own < 0 || image->fd < 0)
        return false;
    struct file_stamp own_stamp = file_stamp_of(own), stamp = file_stamp_of(image->fd);
    buffer_init(&bytes, IDENTITY_BYTES);
    buffer_string(&bytes, magic);
    file_stamp_append(&own_stamp, &bytes);
    file_stamp_append(&stamp, &bytes);
    buffer_u64le(&bytes, image->start);
    bool told = bytes.size == IDENTITY_BYTES && own_stamp.size_bytes && stamp.size_bytes;
    if (told)
        memcpy(out, bytes.data, IDENTITY_BYTES);
    buffer_done(&bytes);
    return told;
}

bool kept_index_wants(const struct kept_folder *folder, const struct source *image)
{
    return folder && image->size >= IMAGE_BYTES_MIN;
}

static struct symbol_id id_of(const uint8_t identity[IDENTITY_BYTES])
{
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits(identity, IDENTITY_BYTES));
    struct symbol_id id = { .size = sizeof digest.digest };
    memcpy(id.bytes, digest.digest, sizeof digest.digest);
    return id;
}

static uint64_t hash(struct span bytes)
{
    return XXH3_64bits(bytes.data, bytes.size);
}

static bool read_kept(const struct source *kept, const uint8_t identity[IDENTITY_BYTES], struct buffer *out)
{
    uint8_t head[HEAD_BYTES];
    return source_read(kept, 0, head, sizeof head, NULL) && memcmp(head, identity, IDENTITY_BYTES) == 0 &&
           source_load(kept, HEAD_BYTES, kept->size - HEAD_BYTES, out, NULL) &&
           hash(buffer_span(out)) == load_u64le(head + IDENTITY_BYTES);
}

void kept_index_load(const struct kept_folder *folder, const struct source *image, struct buffer *out)
{
    uint8_t identity[IDENTITY_BYTES];
    struct source kept;
    buffer_init(out, KEPT_INDEX_BYTES_MAX);
    if (!kept_index_wants(folder, image) || !identify(image, identity))
        return;
    struct symbol_id id = id_of(identity);
    AUTO_FD int fd = kept_folder_find(folder, &id, SYMBOL_CACHE_INDEX);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &kept, NULL) || !read_kept(&kept, identity, out))
        buffer_clear(out);
}

struct kept_work {
    const uint8_t *identity;
    struct span bytes;
};

static bool write_all(void *user, int fd)
{
    const struct kept_work *work = user;
    struct buffer head;
    buffer_init(&head, HEAD_BYTES);
    buffer_append(&head, work->identity, IDENTITY_BYTES);
    buffer_u64le(&head, hash(work->bytes));
    bool ok = !head.failed && fd_write(fd, buffer_span(&head)) && fd_write(fd, work->bytes);
    buffer_done(&head);
    return ok;
}

void kept_index_save(const struct kept_folder *folder, const struct source *image, struct span bytes)
{
    uint8_t identity[IDENTITY_BYTES];
    struct kept_work work = { identity, bytes };
    if (!kept_index_wants(folder, image) || bytes.size > KEPT_INDEX_BYTES_MAX || !identify(image, identity))
        return;
    struct symbol_id id = id_of(identity);
    kept_folder_save(folder, &id, SYMBOL_CACHE_INDEX, write_all, &work, NULL);
}
