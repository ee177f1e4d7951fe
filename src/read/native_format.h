/*
 * native_format: the compact integers, arrays and hash tables of a ReadyToRun image.
 *
 * Specified in dotnet/runtime src/coreclr/vm/nativeformatreader.h and
 * docs/design/coreclr/botr/readytorun-format.md. A table is the bytes of its own section.
 */
#ifndef CLRPERF_READ_NATIVE_FORMAT_H
#define CLRPERF_READ_NATIVE_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

/* Little-endian behind a length tag of 1 to 5 bits; a reserved tag fails the cursor. */
uint32_t cursor_native_uint(struct cursor *c);
int32_t cursor_native_int(struct cursor *c);

/* A sparse array of byte positions. */
struct native_array {
    struct span bytes;   /* borrowed */
    uint32_t start;      /* what positions in the array count from */
    uint32_t count;      /* elements there can be; most of them may be absent */
    uint8_t index_width; /* bytes: 1, 2 or 4 */
};

bool native_array_open(struct span bytes, struct native_array *out, struct error *err);
/* A cursor at element `index`; false when it is absent, or the array is damaged there. */
bool native_array_find(const struct native_array *array, uint32_t index, struct cursor *out);
/* Every element that native_array_find() finds, by index. False when `each` said stop. */
typedef bool native_array_fn(void *user, uint32_t index, struct cursor at);
bool native_array_each(const struct native_array *array, native_array_fn *each, void *user);

/* A cursor at the target of one entry of a hash table, and its position in the bytes. False stops. */
typedef bool native_hashtable_fn(void *user, struct cursor target);

/* Every entry of the hash table in `bytes`. False when it is damaged, or `each` said stop. */
bool native_hashtable_each(struct span bytes, native_hashtable_fn *each, void *user, struct error *err);

#endif
