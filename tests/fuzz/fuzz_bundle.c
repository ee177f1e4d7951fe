/* A single-file program: host bytes with the marker, files (compressed or not), the directory. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "read/bundle.h"

enum { HEAD_BYTES_MAX = 512, COPY_BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unpack(const struct source *file, const struct bundle_entry *entry)
{
    struct buffer head;
    int fd;
    buffer_init(&head, HEAD_BYTES_MAX);
    bundle_entry_head(file, entry, &head, NULL);
    if (head.size > HEAD_BYTES_MAX)
        abort();
    buffer_done(&head);
    if (entry->size_bytes <= COPY_BYTES_MAX && bundle_entry_copy(file, entry, &fd, NULL))
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span((struct span){ data, size });
    struct bundle *bundle;
    if (!bundle_open(&file, &bundle, NULL))
        return 0;
    for (size_t i = 0; i < bundle_count(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        uint64_t held = entry->compressed_bytes ? entry->compressed_bytes : entry->size_bytes;
        if (entry->file_off > size || held > size - entry->file_off)
            abort();
        if (held)
            bundle_find(bundle, entry->file_off);
        bundle_find_path(bundle, entry->path);
        unpack(&file, entry);
    }
    bundle_close(bundle);
    return 0;
}
