#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cursor.h"
#include "clr/stub_sweep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BASE = 0x400000 };

static void read_bytes(void *user, struct memory_piece *pieces, size_t count)
{
    const struct span *bytes = user;
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)(pieces[i].addr - BASE), left = at < bytes->size ? bytes->size - at : 0;
        pieces[i].got = left < pieces[i].size ? left : pieces[i].size;
        if (pieces[i].got)
            memcpy(pieces[i].into, bytes->data + at, pieces[i].got);
    }
}

/* What is told ascends, is not empty and lies where was looked. */
static void check(void *user, uint64_t begin, uint64_t end, const char *kind)
{
    uint64_t *last = user;
    if (begin < *last || end <= begin || !kind)
        __builtin_trap();
    *last = end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_of(data, size);
    struct memory memory = { .read = read_bytes, .user = &bytes };
    uint64_t last = BASE;
    stub_sweep(&memory, BASE, BASE + size, check, &last);
    if (last > BASE + size)
        __builtin_trap();
    return 0;
}
