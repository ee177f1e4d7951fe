/* A runtime's threads and locks in memory of any content: bounded work, no contradiction. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../flat_memory.h"
#include "base/cursor.h"
#include "clr/managed_lock.h"
#include "clr/managed_thread_name.h"

enum { BASE = 0x10000 };

static void read_name(struct memory_pages *pages, const struct managed_thread *thread)
{
    static const struct managed_thread_name_place place = { .handle = 0x20, .thread = 0x30, .name = 0x18 };
    struct buffer name;
    buffer_init(&name, 4 * MANAGED_THREAD_NAME_MAX);
    managed_thread_name_read(pages, &place, thread, &name);
    buffer_done(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 16)
        return 0;
    struct flat_memory bytes = { BASE, (void *)(uintptr_t)data, size };
    struct memory_mapping mapping = { .start = BASE, .end = BASE + size, .writable = true, .path = "" };
    struct memory memory = { flat_memory_read, &bytes, &mapping, 1, false };
    struct memory_pages pages;
    memory_pages_init(&pages, &memory, 1 << 20);
    for (unsigned major = 8; major <= 10; major++) {
        struct managed_threads threads = { .major = major, .table = BASE, .store = BASE };
        struct managed_lock lock;
        managed_threads_read(&threads, &pages);
        for (size_t i = 0; i < threads.count && i < 16; i++) {
            read_name(&pages, &threads.items[i]);
            if (threads.items[i].blocking != BLOCKING_NONE &&
                managed_lock_read_monitor(&pages, &threads, threads.items[i].sync_block, &lock) &&
                lock.owner && !managed_threads_by_tid(&threads, lock.owner))
                abort();
        }
        managed_lock_read_object(&pages, &threads, BASE + 0x100, &lock);
        managed_threads_done(&threads);
    }
    memory_pages_done(&pages);
    return 0;
}
