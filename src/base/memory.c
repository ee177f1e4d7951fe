#include "base/memory.h"

#include <string.h>

bool memory_read(const struct memory *memory, uint64_t addr, void *into, size_t size)
{
    struct memory_piece piece = { .addr = addr, .into = into, .size = size };
    memory->read(memory->user, &piece, 1);
    if (piece.got < size)
        memset((uint8_t *)into + piece.got, 0, size - piece.got);
    return piece.got == size;
}

const struct memory_mapping *memory_mapping_at(const struct memory *memory, uint64_t addr)
{
    size_t low = 0, high = memory->mapping_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->mappings[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < memory->mapping_count && memory->mappings[low].start <= addr ? &memory->mappings[low] : NULL;
}
