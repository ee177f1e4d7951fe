/* The walk over a runtime's memory, of which every byte may be anything. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../followed_memory.h"
#include "base/memory_snapshot.h"
#include "clr/code_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool ignore(void *user, const struct found_method *method)
{
    *(uint64_t *)user += method->begin + (uint8_t)method->name[0];
    return true;
}

/* What is read ahead changes nothing. */
static void compare_followed(const struct memory *memory)
{
    struct followed_memory followed;
    struct code_walk *plain, *ahead;
    struct found_method found, other;
    followed_memory_init(&followed, memory);
    bool opened = code_walk_open(memory, NULL, &plain, NULL);
    if (opened != code_walk_open(&followed.memory, NULL, &ahead, NULL))
        abort();
    if (!opened)
        return;
    for (uint64_t addr = UINT64_C(0x7f3000000000); addr < UINT64_C(0x7f3000002000); addr += 37) {
        code_walk_follow(ahead, 0, addr);
        bool got = code_walk_find(plain, addr, &found);
        if (got != code_walk_find(ahead, addr, &other) ||
            (got && (found.begin != other.begin || found.end != other.end ||
                     found.method_id != other.method_id || strcmp(found.name, other.name) != 0)))
            abort();
    }
    code_walk_close(plain);
    code_walk_close(ahead);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_snapshot snapshot;
    struct code_walk *walk;
    struct found_method found;
    uint64_t sum = 0;
    if (!memory_snapshot_open((struct span){ data, size }, &snapshot, NULL))
        return 0;
    if (code_walk_open(&snapshot.memory, NULL, &walk, NULL)) {
        code_walk_list(walk, WALK_ALL, ignore, &sum);
        for (uint64_t addr = UINT64_C(0x7f3000000000); addr < UINT64_C(0x7f3000002000); addr += 37)
            code_walk_find(walk, addr, &found);
        const uint64_t addrs[] = { UINT64_C(0x7f3000000100), UINT64_C(0x7f3000000111),
                                   UINT64_C(0x7f3000001f8a) };
        code_walk_list_at(walk, addrs, 3, ignore, &sum);
        code_walk_renew(walk);
        code_walk_list(walk, WALK_ALL, ignore, &sum);
        code_walk_close(walk);
        compare_followed(&snapshot.memory);
    }
    memory_snapshot_done(&snapshot);
    return 0;
}
