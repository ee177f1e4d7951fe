#include "symbolize/runtime_names.h"

#include "symbolize/fcall_names.h"
#include "symbolize/jit_helper_names.h"
#include "symbolize/qcall_names.h"

enum { STRINGS_BYTES_MAX = 1 << 16, ROW_BYTES = 13 };

static void init(const struct elf *e, struct runtime_names *names)
{
    for (size_t i = 0; i < RUNTIME_TABLES; i++) {
        symbol_table_init(&names->tables[i], elf_base_addr(e), false);
        buffer_init(&names->strings[i], STRINGS_BYTES_MAX);
    }
}

static void sort(struct runtime_names *names)
{
    for (size_t i = 0; i < RUNTIME_TABLES; i++)
        symbol_table_sort(&names->tables[i]);
}

void runtime_names_find(const struct elf *e, const struct eh_ranges *functions, struct runtime_names *out)
{
    struct relocated_pointers pointers;
    init(e, out);
    if (!relocated_pointers_read(e, functions, &pointers, NULL))
        return;
    qcall_names_find(&pointers, &out->tables[RUNTIME_QCALLS]);
    jit_helper_names_find(&pointers, &out->tables[RUNTIME_JIT_HELPERS], &out->strings[RUNTIME_JIT_HELPERS],
                          NULL);
    fcall_names_find(&pointers, &out->tables[RUNTIME_FCALLS], &out->strings[RUNTIME_FCALLS]);
    relocated_pointers_done(&pointers);
    sort(out);
}

void runtime_names_done(struct runtime_names *names)
{
    for (size_t i = 0; i < RUNTIME_TABLES; i++) {
        symbol_table_done(&names->tables[i]);
        buffer_done(&names->strings[i]);
    }
}

void runtime_names_write(const struct runtime_names *names, struct buffer *out)
{
    for (size_t i = 0; i < RUNTIME_TABLES; i++) {
        const struct symbol_table *table = &names->tables[i];
        buffer_u32le(out, (uint32_t)table->count);
        for (size_t j = 0; j < table->count; j++) {
            buffer_u32le(out, table->rows[j].start);
            buffer_u32le(out, table->rows[j].size_bytes);
            buffer_u32le(out, table->rows[j].name);
            buffer_u8(out, table->rows[j].rank);
        }
        buffer_u32le(out, (uint32_t)names->strings[i].size);
        buffer_append(out, names->strings[i].data, names->strings[i].size);
    }
}

static bool read_table(struct cursor *c, struct symbol_table *table, struct buffer *strings)
{
    uint32_t count = cursor_u32le(c);
    if (count > cursor_left(c) / ROW_BYTES)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t start = cursor_u32le(c), size_bytes = cursor_u32le(c), name = cursor_u32le(c);
        symbol_table_add(table, table->base + start, size_bytes, name, cursor_u8(c));
    }
    struct span text = cursor_bytes(c, cursor_u32le(c));
    buffer_append(strings, text.data, text.size);
    return cursor_ok(c) && !strings->failed;
}

bool runtime_names_read(struct cursor *c, const struct elf *e, struct runtime_names *out)
{
    bool ok = true;
    init(e, out);
    for (size_t i = 0; ok && i < RUNTIME_TABLES; i++)
        ok = read_table(c, &out->tables[i], &out->strings[i]);
    if (!ok) {
        runtime_names_done(out);
        init(e, out);
    }
    sort(out);
    return ok;
}
