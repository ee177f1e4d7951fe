/* Finding the layout of a runtime in its memory, of which every byte may be anything. */
#include <stddef.h>
#include <stdint.h>

#include "base/memory_snapshot.h"
#include "clr/derived_layout.h"

enum { PAGES_BYTES = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_snapshot snapshot;
    struct memory_pages pages;
    struct runtime_root root;
    struct runtime_layout layout;
    if (!memory_snapshot_open((struct span){ data, size }, &snapshot, NULL))
        return 0;
    memory_pages_init(&pages, &snapshot.memory, PAGES_BYTES);
    if (runtime_root_find(&pages, &root, NULL)) {
        derived_layout_find(&pages, &root, NULL, &layout, NULL);
        runtime_root_done(&root);
    }
    memory_pages_done(&pages);
    memory_snapshot_done(&snapshot);
    return 0;
}
