#include "base/memory_path.h"

#include <assert.h>

#include "base/cursor.h"

enum { FLAGS_MASK = 3, ROW_BYTES = 8 };

uint8_t memory_path_add(struct memory_path *path, struct memory_step step)
{
    assert(path->count < MEMORY_PATH_STEPS_MAX && step.from <= path->count);
    path->steps[path->count++] = step;
    return (uint8_t)path->count;
}

uint8_t memory_path_add_pointer(struct memory_path *path, uint8_t from, int32_t offset)
{
    return memory_path_add(path, (struct memory_step){ from, STEP_POINTER, offset, 0 });
}

static bool take_step(const struct memory_step *step, uint64_t from, memory_peek_fn *peek, void *user,
                      uint64_t *out)
{
    static const uint8_t sizes[] = { [STEP_POINTER] = 8, [STEP_RVA] = 4, [STEP_BACK] = 1 };
    uint8_t bytes[8] = { 0 };
    if (!peek(user, from + (uint64_t)(int64_t)step->offset, bytes, sizes[step->kind]))
        return false;
    uint64_t number = load_u64le(bytes);
    switch (step->kind) {
    case STEP_POINTER:
        *out = number & ~(uint64_t)FLAGS_MASK;
        return true;
    case STEP_RVA:
        *out = step->base + number;
        return true;
    default:
        *out = from - step->base - ROW_BYTES * number;
        return true;
    }
}

bool memory_path_walk(const struct memory_path *path, memory_peek_fn *peek, void *user)
{
    uint64_t places[MEMORY_PATH_STEPS_MAX + 1] = { path->start };
    uint8_t byte;
    bool all = peek(user, path->start, &byte, 1);
    for (uint32_t i = 0; i < path->count; i++) {
        const struct memory_step *step = &path->steps[i];
        uint64_t from = places[step->from];
        if (from)
            all &= take_step(step, from, peek, user, &places[i + 1]);
        if (places[i + 1])
            all &= peek(user, places[i + 1], &byte, 1);
    }
    return all;
}
