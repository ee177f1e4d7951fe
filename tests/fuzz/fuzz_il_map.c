/* The first byte is the runtime's version, 0 for a precompiled image's map; the rest is debug info. */
#include <stdint.h>
#include <stdlib.h>

#include "clr/jit_il_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CODE_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct il_map map;
    size_t start = 0;
    if (size == 0)
        return 0;
    unsigned major = data[0] % (JIT_IL_MAP_NEWEST + 1);
    struct span bytes = span_of(data + 1, size - 1);
    if (major && !jit_il_map_start(bytes, major, &start))
        return 0;
    bytes = span_part(bytes, start, bytes.size - start);
    for (int form = IL_MAP_NIBBLES; form < IL_MAP_FORMS; form++) {
        if (!il_map_read(bytes, (enum il_map_form)form, CODE_BYTES, &map, NULL))
            continue;
        for (size_t i = 0; i < map.count; i++)
            if (map.points[i].code_off > CODE_BYTES ||
                (i && map.points[i].code_off < map.points[i - 1].code_off))
                abort();
        il_map_find(map.points, map.count, CODE_BYTES / 2);
        il_map_done(&map);
    }
    return 0;
}
