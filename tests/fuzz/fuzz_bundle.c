/* A single-file program: host bytes with the marker, files, the directory. */
#include <stdint.h>
#include <stdlib.h>

#include "read/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    }
    bundle_close(bundle);
    return 0;
}
