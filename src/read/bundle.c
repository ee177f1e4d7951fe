#include "read/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/fd_write.h"
#include "base/mem.h"
#include "base/own.h"
#include "read/unpack.h"

enum {
    MARKER_BYTES = 32,
    OFFSET_BYTES = 8, /* in front of the marker */
    CHUNK_BYTES = 1 << 20,
    HOST_BYTES_MAX = 64 << 20, /* the marker is in the host's own data, before anything bundled */
    DIRECTORY_BYTES_MAX = 16 << 20,
    PATH_BYTES_MAX = 4096,
    ENTRIES_MAX = 1 << 16,
    MAJOR_WITH_JSON_OFFSETS = 2,
    MAJOR_WITH_COMPRESSION = 6,
    MAJOR_MAX = 6,
};

/* SHA-256 of ".net core bundle". */
static const uint8_t marker[MARKER_BYTES] = {
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
    0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
};

struct bundle {
    struct arena memory;
    struct bundle_entry *entries; /* by offset */
    size_t count, capacity;
};

/* The offset of the directory; 0 is what a host that nothing was bundled with says. */
static bool find_directory(const struct source *file, uint64_t *out, struct error *err)
{
    struct buffer chunk;
    uint64_t end = file->size < HOST_BYTES_MAX ? file->size : HOST_BYTES_MAX;
    bool found = false;
    buffer_init(&chunk, CHUNK_BYTES);
    /* Chunks overlap, so that a marker across their border is seen whole, with the offset in front. */
    for (uint64_t at = 0; !found && at < end; at += CHUNK_BYTES - MARKER_BYTES - OFFSET_BYTES) {
        uint64_t size = end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES;
        if (!source_load(file, at, size, &chunk, err)) {
            buffer_done(&chunk);
            return false;
        }
        const uint8_t *hit = memmem(chunk.data, chunk.size, marker, sizeof marker);
        if (hit && hit - chunk.data >= OFFSET_BYTES) {
            *out = load_u64le(hit - OFFSET_BYTES);
            found = true;
        }
    }
    buffer_done(&chunk);
    if (!found || *out == 0)
        return error_set(err, ERROR_UNSUPPORTED, "not a single-file .NET program");
    return true;
}

static const char *read_path(struct cursor *c, struct bundle *bundle)
{
    uint32_t size = cursor_varuint32(c);
    if (size > PATH_BYTES_MAX)
        c->failed = true;
    struct span path = cursor_bytes(c, size);
    return cursor_ok(c) ? arena_string(&bundle->memory, path) : NULL;
}

static bool read_entry(struct cursor *c, uint32_t major, uint64_t file_size, struct bundle *bundle,
                       struct error *err)
{
    struct bundle_entry entry = { .file_off = cursor_u64le(c) };
    entry.size_bytes = cursor_u64le(c);
    if (major >= MAJOR_WITH_COMPRESSION)
        entry.compressed_bytes = cursor_u64le(c);
    uint8_t kind = cursor_u8(c);
    entry.kind = kind <= BUNDLE_SYMBOLS ? (enum bundle_kind)kind : BUNDLE_UNKNOWN;
    entry.path = read_path(c, bundle);
    if (!cursor_finish(c, err, "bundle directory"))
        return false;
    if (!entry.path)
        return error_set(err, ERROR_LIMIT, "the bundle directory is too large");
    uint64_t held = entry.compressed_bytes ? entry.compressed_bytes : entry.size_bytes;
    if (entry.file_off > file_size || held > file_size - entry.file_off)
        return error_set(err, ERROR_INPUT, "the bundle's '%.200s' lies outside the file", entry.path);
    bundle->entries =
        mem_grow(bundle->entries, &bundle->capacity, bundle->count + 1, sizeof *bundle->entries);
    bundle->entries[bundle->count++] = entry;
    return true;
}

static bool read_directory(struct span bytes, uint64_t file_size, struct bundle *bundle, struct error *err)
{
    struct cursor c = cursor_over(bytes);
    uint32_t major = cursor_u32le(&c);
    cursor_skip(&c, 4);
    uint32_t count = cursor_u32le(&c);
    if (cursor_ok(&c) && (major == 0 || major > MAJOR_MAX))
        return error_set(err, ERROR_UNSUPPORTED, "a bundle of version %" PRIu32, major);
    if (count > ENTRIES_MAX)
        return error_set(err, ERROR_LIMIT, "a bundle of %" PRIu32 " files", count);
    cursor_skip(&c, cursor_varuint32(&c)); /* the bundle's id */
    if (major >= MAJOR_WITH_JSON_OFFSETS)
        cursor_skip(&c, 5 * 8);
    for (uint32_t i = 0; i < count; i++)
        if (!read_entry(&c, major, file_size, bundle, err))
            return false;
    return cursor_finish(&c, err, "bundle directory");
}

static int by_offset(const void *a, const void *b)
{
    const struct bundle_entry *left = a, *right = b;
    return left->file_off < right->file_off ? -1 : left->file_off > right->file_off;
}

bool bundle_open(const struct source *file, struct bundle **out, struct error *err)
{
    uint64_t at = 0;
    if (!find_directory(file, &at, err))
        return false;
    if (at >= file->size)
        return error_set(err, ERROR_INPUT, "the bundle's directory lies behind the end of the file");
    struct buffer bytes;
    buffer_init(&bytes, DIRECTORY_BYTES_MAX);
    uint64_t left = file->size - at;
    struct bundle *bundle = mem_alloc(1, sizeof *bundle);
    arena_init(&bundle->memory, DIRECTORY_BYTES_MAX);
    bool ok = source_load(file, at, left < DIRECTORY_BYTES_MAX ? left : DIRECTORY_BYTES_MAX, &bytes, err) &&
              read_directory(buffer_span(&bytes), file->size, bundle, err);
    buffer_done(&bytes);
    if (!ok) {
        bundle_close(bundle);
        return false;
    }
    if (bundle->count)
        qsort(bundle->entries, bundle->count, sizeof *bundle->entries, by_offset);
    *out = bundle;
    return true;
}

void bundle_close(struct bundle *bundle)
{
    if (!bundle)
        return;
    arena_done(&bundle->memory);
    free(bundle->entries);
    free(bundle);
}

size_t bundle_count(const struct bundle *bundle)
{
    return bundle->count;
}

const struct bundle_entry *bundle_at(const struct bundle *bundle, size_t index)
{
    return &bundle->entries[index];
}

const struct bundle_entry *bundle_find(const struct bundle *bundle, uint64_t file_off)
{
    size_t low = 0, high = bundle->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bundle->entries[middle].file_off <= file_off)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct bundle_entry *entry = &bundle->entries[low - 1];
    uint64_t held = entry->compressed_bytes ? entry->compressed_bytes : entry->size_bytes;
    return file_off - entry->file_off < held ? entry : NULL;
}

const struct bundle_entry *bundle_find_path(const struct bundle *bundle, const char *path)
{
    for (size_t i = 0; i < bundle->count; i++)
        if (strcmp(bundle->entries[i].path, path) == 0)
            return &bundle->entries[i];
    return NULL;
}

/* Where it is held in the executable, as it is held. */
static struct source entry_source(const struct source *file, const struct bundle_entry *entry)
{
    return source_part(file, entry->file_off,
                       entry->compressed_bytes ? entry->compressed_bytes : entry->size_bytes);
}

bool bundle_entry_head(const struct source *file, const struct bundle_entry *entry, struct buffer *out,
                       struct error *err)
{
    struct source held = entry_source(file, entry);
    if (!entry->compressed_bytes)
        return source_load(&held, 0, held.size < out->ceiling ? held.size : out->ceiling, out, err);
    struct error problem = { 0 };
    if (unpack_deflate(&held, out, &problem) || out->size == out->ceiling)
        return true;
    if (err)
        *err = problem;
    return error_context(err, "the bundle's '%.200s'", entry->path);
}

static bool copy_stored(const struct source *held, int fd, struct error *err)
{
    uint8_t bytes[1 << 16];
    for (uint64_t at = 0; at < held->size;) {
        size_t size = held->size - at < sizeof bytes ? (size_t)(held->size - at) : sizeof bytes;
        if (!source_read(held, at, bytes, size, err))
            return false;
        if (!fd_write(fd, span_of(bytes, size)))
            return error_system(err, errno, "cannot copy out of a bundle");
        at += size;
    }
    return true;
}

bool bundle_entry_copy(const struct source *file, const struct bundle_entry *entry, int *out_fd,
                       struct error *err)
{
    struct source held = entry_source(file, entry);
    if (entry->size_bytes > UNPACK_BYTES_MAX)
        return error_set(err, ERROR_LIMIT, "the bundle's '%.200s' is too large", entry->path);
    AUTO_FD int fd = memfd_create("clrperf-bundle", MFD_CLOEXEC);
    if (fd < 0)
        return error_system(err, errno, "cannot copy out of a bundle");
    bool ok = entry->compressed_bytes ? unpack_deflate_to(&held, entry->size_bytes, fd, err)
                                      : copy_stored(&held, fd, err);
    if (!ok)
        return error_context(err, "the bundle's '%.200s'", entry->path);
    *out_fd = take_fd(&fd);
    return true;
}

bool bundle_entry_open(const struct source *file, const struct bundle_entry *entry, struct source *out,
                       struct error *err)
{
    AUTO_FD int fd = -1;
    bool packed = entry->compressed_bytes != 0;
    if (packed && !bundle_entry_copy(file, entry, &fd, err))
        return false;
    if (!packed && (fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return error_system(err, errno, "cannot open a part of a bundle");
    if (!source_over_fd(fd, packed ? 0 : file->start + entry->file_off, entry->size_bytes, out, err))
        return false;
    take_fd(&fd);
    return true;
}
