/* A GC's heap in memory of any content: bounded work, objects inside of their segments, every byte accounted
 * for. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../flat_memory.h"
#include "base/clock.h"
#include "clr/async_chains.h"
#include "clr/managed_exception.h"
#include "clr/managed_string.h"
#include "clr/managed_thread_name.h"

enum { BASE = 0x10000, DAC_TABLE = BASE + 0x100, DEADLINE_NS = 20000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool want(void *user, uint32_t number, const struct heap_type *type)
{
    (void)user;
    return number % 2 == 0 && type->valid;
}

static void visit(void *user, const struct heap_object *object)
{
    const struct heap_map *map = user;
    for (size_t i = 0; i < map->segment_count; i++)
        if (object->addr >= map->segments[i].begin && object->addr < map->segments[i].end &&
            object->size_bytes <= map->segments[i].end - object->addr &&
            object->bytes.size <= object->size_bytes)
            return;
    abort();
}

static void walk(struct loaded_types *types, const struct heap_map *map)
{
    struct heap_walk_result r;
    struct heap_visitor visitor = { want, visit, (void *)map };
    heap_walk_run(types, map, &visitor, clock_monotonic_ns() + DEADLINE_NS, &r);
    uint64_t seen = r.bytes + r.free_bytes + r.unused_bytes + r.unexplained_bytes + r.unreadable_bytes;
    if (r.late ? seen > heap_map_bytes(map) : seen != heap_map_bytes(map))
        abort();
}

static void count_exception(void *user, const char *type, struct span message)
{
    size_t *count = user;
    if (!type[0] || message.size > 4 * MANAGED_STRING_MAX || ++*count > MANAGED_EXCEPTIONS_MAX)
        abort();
}

static void read_thread(struct loaded_types *types, const struct managed_threads *threads)
{
    struct managed_thread_name_place place;
    size_t count = 0;
    managed_thread_name_place_find(types, threads, &place);
    managed_exception_list(types, &threads->items[0], count_exception, &count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 16)
        return 0;
    struct flat_memory bytes = { BASE, (void *)(uintptr_t)data, size };
    struct memory_mapping mapping = { .start = BASE, .end = BASE + size, .writable = true, .path = "" };
    struct memory memory = { flat_memory_read, &bytes, &mapping, 1, false };
    struct memory_pages pages;
    struct loaded_types types;
    struct heap_map map;
    struct managed_thread thread = {
        .addr = BASE + 0x200, .tid = 1, .allocates_from = BASE + 0x10040, .allocates_to = BASE + 0x10080
    };
    struct managed_threads threads = { .table = DAC_TABLE, .items = &thread, .count = 1 };
    memory_pages_init(&pages, &memory, 1 << 20);
    loaded_types_init(&types, &pages, &runtime_layouts[0], NULL);
    read_thread(&types, &threads);
    if (heap_map_open(&pages, &threads, &map, NULL)) {
        struct async_graph graph;
        struct async_chains chains;
        if (heap_map_read(&map, &pages, &threads, NULL))
            walk(&types, &map);
        async_graph_read(&types, &map, clock_monotonic_ns() + DEADLINE_NS, &graph);
        async_chains_find(&graph, &chains);
        async_chains_done(&chains);
        async_graph_done(&graph);
        heap_map_done(&map);
    }
    loaded_types_done(&types);
    memory_pages_done(&pages);
    return 0;
}
