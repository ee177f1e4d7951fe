#include "clr/method_path.h"

enum { WORD_BYTES = 8, DEBUG_INFO = 0, UNWIND_DATA = 8 /* in an unwind record */ };

static void add_type(const struct runtime_layout *layout, uint8_t method, struct memory_path *path)
{
    uint8_t chunk = memory_path_add(
        path, (struct memory_step){ method, STEP_BACK, layout->method.chunk_index, layout->chunk.size });
    uint8_t table = memory_path_add_pointer(path, chunk, layout->chunk.table);
    uint8_t eeclass = memory_path_add_pointer(path, table, layout->table.class_or_canonical);
    memory_path_add_pointer(path, eeclass, layout->class_table);
    memory_path_add_pointer(path, table, layout->table.module);
}

static void add_version(const struct runtime_layout *layout, uint8_t method, struct memory_path *path)
{
    if (layout->version.first == LAYOUT_NONE || layout->method.code_data == LAYOUT_NONE)
        return;
    uint8_t data = memory_path_add_pointer(path, method, layout->method.code_data);
    uint8_t state = memory_path_add_pointer(path, data, layout->version.state);
    memory_path_add_pointer(path, state, layout->version.first);
}

/* The place of the header. */
static uint8_t start_path(uint64_t start, struct memory_path *out)
{
    *out = (struct memory_path){ .start = start - WORD_BYTES };
    uint8_t header = memory_path_add_pointer(out, 0, 0);
    memory_path_add_pointer(out, header, DEBUG_INFO);
    return header;
}

void method_path_of_debug_info(uint64_t start, struct memory_path *out)
{
    start_path(start, out);
}

/* The same, and to its unwind data. */
static uint8_t add_unwinding(const struct runtime_layout *layout, uint64_t range_begin, uint64_t start,
                             struct memory_path *out)
{
    uint8_t header = start_path(start, out);
    if (range_begin)
        memory_path_add(
            out, (struct memory_step){ header, STEP_RVA, layout->header.unwinds + UNWIND_DATA, range_begin });
    return header;
}

void method_path_of_unwinding(const struct runtime_layout *layout, uint64_t range_begin, uint64_t start,
                              struct memory_path *out)
{
    add_unwinding(layout, range_begin, start, out);
}

void method_path_of(const struct runtime_layout *layout, uint64_t range_begin, uint64_t start,
                    struct memory_path *out)
{
    uint8_t header = add_unwinding(layout, range_begin, start, out);
    uint8_t method = memory_path_add_pointer(out, header, layout->header.method);
    add_type(layout, method, out);
    add_version(layout, method, out);
}
