/*
 * runtime_fixture: a made-up runtime in a memory snapshot, laid out as one of the versions we know.
 *
 * It has loaded one assembly, which may be optimized, has a few regions of code and one heap with code of all
 * the assembly's methods, a stub and a dynamic method. Methods of odd rows are tiered, their calls counted.
 */
#ifndef CLRPERF_TESTS_RUNTIME_FIXTURE_H
#define CLRPERF_TESTS_RUNTIME_FIXTURE_H

#include "base/buffer.h"
#include "clr/runtime_layout.h"

enum {
    FIXTURE_RUNTIME_BYTES = 0x8000,
    FIXTURE_DATA_BYTES = 0x80000,
    FIXTURE_CODE_BYTES = 0x8000,
    FIXTURE_BODIES = 120, /* of methods; then one stub and one dynamic method */
};
#define FIXTURE_RUNTIME UINT64_C(0x7f1000000000)
#define FIXTURE_DATA    UINT64_C(0x7f2000000000)
#define FIXTURE_CODE    UINT64_C(0x7f3000000000)

struct runtime_fixture {
    const struct runtime_layout *layout;
    uint8_t runtime[FIXTURE_RUNTIME_BYTES], data[FIXTURE_DATA_BYTES], code[FIXTURE_CODE_BYTES];
    uint64_t used; /* of data */
    uint64_t module, plain /* a type without parameters */, table[64], methods[256], dynamic;
    uint32_t method_count;
    uint64_t first_body, dynamic_body;
    uint64_t dynamic_mark; /* the number of the nibble map that says where the latter begins */
    uint64_t stages[256];  /* of methods: the byte that says how far the counting of their calls is; or 0 */
    bool exported;         /* g_dacTable can be found by its name; else only a scan finds the root */
};

/* Fills it; `assembly` is the file of the assembly, at most 256 KiB. About 120 of its
 * methods are there, from all over it. */
void runtime_fixture_build(struct runtime_fixture *f, const struct runtime_layout *layout,
                           struct span assembly, bool exported);
void runtime_fixture_put(struct runtime_fixture *f, uint64_t addr, uint64_t value, size_t bytes);
/* The snapshot's bytes; see base/memory_snapshot.h. */
void runtime_fixture_write(const struct runtime_fixture *f, struct buffer *out);

#endif
