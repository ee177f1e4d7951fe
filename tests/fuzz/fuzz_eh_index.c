#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "read/eh_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FRAME_ADDR = 0x100000, HEADER_ADDR = 0x110000, HEAD = 3 };

/* u8 machine, u16le size of the header section; what follows it is .eh_frame. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eh_index *index;
    uint64_t start, end, starts[8];
    if (size < HEAD || load_u16le(data + 1) > size - HEAD)
        return 0;
    struct eh_sections s = { .frame_addr = FRAME_ADDR,
                             .header_addr = HEADER_ADDR,
                             .base = 0x1000,
                             .machine = data[0] & 1 ? ELF_AARCH64 : ELF_X86_64 };
    size_t header_size = load_u16le(data + 1);
    buffer_init(&s.header, size);
    buffer_init(&s.frame, size);
    buffer_append(&s.header, data + HEAD, header_size);
    buffer_append(&s.frame, data + HEAD + header_size, size - HEAD - header_size);
    if (!eh_index_over(&s, &index, NULL))
        return 0;
    eh_index_with_bytes(index, span_of("\x0e\x10", 2), starts, 8);
    eh_index_with_bytes(index, span_of("\x41\x0e\x10\x41\x0e", 5), starts, 8);
    for (uint64_t addr = 0x1000; addr < 0x400000; addr += 0x3f1) {
        struct frame_rule by_register;
        eh_index_register(index, addr, (uint8_t)(addr % 40), &by_register);
        const struct eh_rows *rows = eh_index_rows(index, addr);
        if (!rows)
            continue;
        const struct frame_rule *rule = eh_rows_find(rows, addr);
        bool is = eh_rows_function(rows, addr, &start, &end);
        if ((is && (addr < start || addr >= end)) || (is && rule->cfa == FRAME_CFA_NONE))
            __builtin_trap();
    }
    eh_index_close(index);
    return 0;
}
