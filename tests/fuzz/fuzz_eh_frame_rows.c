#include <stddef.h>
#include <stdint.h>

#include "read/eh_frame_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eh_rows rows;
    uint16_t machine = size && data[0] & 1 ? ELF_AARCH64 : ELF_X86_64;
    if (!eh_rows_compile(span_of(data, size), 0x100000, 0x1000, machine, &rows, NULL))
        return 0;
    for (size_t i = 0; i < rows.count; i++) {
        uint64_t addr = rows.base + rows.rows[i].start, start, end;
        if ((i && rows.rows[i - 1].start >= rows.rows[i].start) || rows.rows[i].rule >= rows.rule_count ||
            eh_rows_find(&rows, addr) != &rows.rules[rows.rows[i].rule])
            __builtin_trap();
        if (eh_rows_function(&rows, addr, &start, &end) && (addr < start || addr >= end))
            __builtin_trap();
    }
    eh_rows_done(&rows);
    return 0;
}
