/* Input: an ELF file, as Native AOT makes them. Names that are found must end in the strings. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbolize/aot_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span(span_of(data, size));
    struct elf e;
    struct symbol_table table;
    struct buffer strings;
    if (!elf_open(&file, &e, NULL))
        return 0;
    symbol_table_init(&table, elf_base_addr(&e), false);
    buffer_init(&strings, 1 << 20);
    aot_names_find(&e, &table, &strings);
    for (size_t i = 0; i < table.count; i++)
        if (table.rows[i].name >= strings.size ||
            !memchr(strings.data + table.rows[i].name, 0, strings.size - table.rows[i].name))
            __builtin_trap();
    buffer_done(&strings);
    symbol_table_done(&table);
    elf_done(&e);
    return 0;
}
