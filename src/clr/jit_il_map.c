#include "clr/jit_il_map.h"

#include <stdlib.h>

#include "base/mem.h"
#include "clr/method_path.h"

enum {
    STUB_KIND_MAX = 15,
    UNWIND_RECORDS_MAX = 100000,
    UNWIND_RECORD_BYTES = 12,
    FIRST_READ_BYTES = 512,
    MAP_BYTES_MAX = 1 << 20,
    FLAG_PATCH_POINTS = 1,
    FLAG_RICH = 2,
    NIBBLES_MAJOR_MAX = 9,
    HEADED_MAJOR_MIN = 11, /* the head tells of patch points and more: no flags */
    FLAGS_MAJOR_MIN = 5,
};

/* The head of the patch points, before 4 bytes for each local: its size, and where in it their number is. */
static void patch_points_head(unsigned major, size_t *size, size_t *count_at)
{
    *size = major >= 10 ? 40 : major >= 7 ? 32 : 20;
    *count_at = major >= 10 ? 16 : major >= 7 ? 8 : 0;
}

bool jit_il_map_start(struct span bytes, unsigned major, size_t *out_start)
{
    struct cursor c = cursor_over(bytes);
    uint8_t flags = major >= FLAGS_MAJOR_MIN && major < HEADED_MAJOR_MIN ? cursor_u8(&c) : 0;
    if (flags & FLAG_PATCH_POINTS) {
        size_t size, count_at;
        patch_points_head(major, &size, &count_at);
        cursor_skip(&c, count_at);
        uint32_t locals = cursor_u32le(&c);
        cursor_skip(&c, size - count_at - 4 + UINT64_C(4) * locals);
    }
    if (flags & FLAG_RICH)
        cursor_skip(&c, cursor_u32le(&c));
    *out_start = c.pos;
    return cursor_ok(&c) && !(flags & ~(FLAG_PATCH_POINTS | FLAG_RICH));
}

/* The address of the debug info, 0 for none. False when what lies before the code is not its header. */
static bool find_debug_info(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t begin,
                            uint64_t size_bytes, uint64_t *out)
{
    uint64_t header = memory_pages_u64(pages, begin - 8);
    if (header <= STUB_KIND_MAX || header % 8 != 0)
        return false;
    uint32_t count = memory_pages_u32(pages, header + layout->header.unwind_count);
    if (count == 0 || count > UNWIND_RECORDS_MAX)
        return false;
    uint64_t first = header + layout->header.unwinds;
    uint64_t last = first + (uint64_t)UNWIND_RECORD_BYTES * (count - 1);
    uint32_t first_rva = memory_pages_u32(pages, first), end_rva = memory_pages_u32(pages, last + 4);
    if (end_rva <= first_rva || end_rva - first_rva != size_bytes)
        return false;
    *out = memory_pages_u64(pages, header);
    return true;
}

/* As much as is there: the info may lie before the end of what is mapped. */
static size_t read_some(struct memory_pages *pages, uint64_t addr, uint8_t *into, size_t size)
{
    while (size && !memory_pages_read(pages, addr, into, size)) {
        size_t page = (size_t)((addr + size - 1) % MEMORY_PAGE_BYTES) + 1;
        size -= page < size ? page : size;
    }
    return size;
}

bool jit_il_map_read(struct memory_pages *pages, const struct runtime_layout *layout, unsigned major,
                     uint64_t begin, uint64_t size_bytes, struct il_map *out, struct error *err)
{
    uint64_t info;
    struct memory_path path;
    if (major < JIT_IL_MAP_OLDEST || major > JIT_IL_MAP_NEWEST)
        return error_set(err, ERROR_UNSUPPORTED, "IL maps of runtime version %u are not known", major);
    method_path_of_debug_info(begin, &path);
    memory_pages_follow(pages, 0, &path);
    if (!find_debug_info(pages, layout, begin, size_bytes, &info))
        return error_set(err, ERROR_INPUT, "no code header lies before that code");
    if (info == 0)
        return error_set(err, ERROR_UNSUPPORTED, "code without debug info");
    enum il_map_form form = major <= NIBBLES_MAJOR_MAX ? IL_MAP_NIBBLES
                            : major < HEADED_MAJOR_MIN ? IL_MAP_PACKED
                                                       : IL_MAP_HEADED;
    struct error failure = { 0 };
    bool ok = false;
    /* how long it is only reading tells */
    bool more = true;
    for (size_t wanted = FIRST_READ_BYTES; !ok && more && wanted <= MAP_BYTES_MAX; wanted *= 8) {
        uint8_t *bytes = mem_alloc(wanted, 1);
        size_t start, got = read_some(pages, info, bytes, wanted);
        struct span there = span_of(bytes, got);
        if (jit_il_map_start(there, major, &start))
            ok = il_map_read(span_part(there, start, got - start), form, size_bytes, out, &failure);
        else
            error_set(&failure, ERROR_INPUT, "debug info that makes no sense");
        more = got == wanted && failure.kind == ERROR_INPUT;
        free(bytes);
    }
    if (!ok && err)
        *err = failure;
    return ok;
}
