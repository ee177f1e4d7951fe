#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbolize/jit_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRS = 5 };

static void count(void *user, const struct jit_map_match *match)
{
    uint8_t *named = user;
    if (named[match->index]++ || strlen(match->name.name) == SIZE_MAX)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t addrs[ADDRS] = { 0x1000, 0x1010, 0x7f3dc9800420, 0x7f3dc9800430, UINT64_MAX };
    struct source file = source_over_span(span_of(data, size));
    struct jit_map_result result;
    uint8_t named[ADDRS] = { 0 };
    jit_map_resolve(&file, addrs, ADDRS, count, named, &result, NULL);
    return 0;
}
