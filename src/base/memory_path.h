/*
 * memory_path: places in a process's memory, each of which what lies at an earlier one leads to.
 *
 * Who asks a process place by place waits for each answer; who hands over the path waits once.
 */
#ifndef CLRPERF_BASE_MEMORY_PATH_H
#define CLRPERF_BASE_MEMORY_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_PATH_STEPS_MAX = 16 };

enum memory_step_kind {
    STEP_POINTER, /* to the pointer there, without its two lowest bits, which are flags */
    STEP_RVA,     /* to `base` and the 32-bit number there */
    STEP_BACK,    /* back by `base`, and by 8 bytes for each of the 8-bit number there */
};

struct memory_step {
    uint8_t from; /* place: 0 is the start, 1 where the first step leads, ... */
    uint8_t kind; /* enum memory_step_kind */
    int32_t offset;
    uint64_t base;
};

struct memory_path {
    uint64_t start;
    uint32_t count;
    struct memory_step steps[MEMORY_PATH_STEPS_MAX];
};

/* Adds a step behind the others; its place. */
uint8_t memory_path_add(struct memory_path *path, struct memory_step step);
uint8_t memory_path_add_pointer(struct memory_path *path, uint8_t from, int32_t offset);

/* Reads `size` bytes at `addr`; false when they are not there. */
typedef bool memory_peek_fn(void *user, uint64_t addr, void *into, size_t size);
/* Peeks at each place, as far as pointers are not NULL. False when something was not there. */
bool memory_path_walk(const struct memory_path *path, memory_peek_fn *peek, void *user);

#endif
