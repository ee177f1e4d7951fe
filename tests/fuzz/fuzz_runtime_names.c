/* What may be kept of a runtime's functions and their names. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "symbolize/runtime_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 1 << 20, ADDRS = 0x800 };

static void ask(const struct eh_ranges *functions, const struct runtime_names *names)
{
    struct buffer name;
    struct symbol_match match;
    uint64_t start, size_bytes;
    buffer_init(&name, BYTES_MAX);
    for (uint64_t addr = 0; addr < ADDRS; addr += 4) {
        if (eh_ranges_find(functions, addr, &start, &size_bytes) && addr - start >= size_bytes)
            abort();
        for (int table = 0; table < RUNTIME_TABLES; table++) {
            struct source strings = source_over_span(buffer_span(&names->strings[table]));
            symbol_table_find(&names->tables[table], addr, &strings, false, &name, &match);
        }
    }
    buffer_done(&name);
}

/* What was read is what is written, but for names that share an address. */
static void write_again(const struct elf *e, const struct eh_ranges *functions,
                        const struct runtime_names *names)
{
    struct buffer out;
    struct eh_ranges functions_again;
    struct runtime_names names_again;
    buffer_init(&out, BYTES_MAX);
    eh_ranges_append(functions, &out);
    runtime_names_write(names, &out);
    struct cursor c = cursor_over(buffer_span(&out));
    if (!out.failed) {
        if (!eh_ranges_take(&c, e, &functions_again) || !runtime_names_read(&c, e, &names_again) ||
            cursor_left(&c) || functions_again.count != functions->count)
            abort();
        runtime_names_done(&names_again);
        eh_ranges_done(&functions_again);
    }
    buffer_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elf e = { 0 };
    struct cursor c = cursor_over(span_of(data, size));
    struct eh_ranges functions;
    struct runtime_names names;
    if (!eh_ranges_take(&c, &e, &functions))
        return 0;
    if (runtime_names_read(&c, &e, &names)) {
        ask(&functions, &names);
        write_again(&e, &functions, &names);
    }
    runtime_names_done(&names);
    eh_ranges_done(&functions);
    return 0;
}
