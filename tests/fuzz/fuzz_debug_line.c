/* A byte: how many bytes of .debug_line_str follow; the rest is .debug_line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "read/debug_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(void *user, size_t index, const char *file, uint32_t line)
{
    bool *answered = user;
    if (answered[index] || line == 0 || strlen(file) >= DEBUG_LINE_PATH_MAX)
        abort();
    answered[index] = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t addrs[] = { 0,        1,        0x401000, 0x401001, 0x401013,  0x401020,
                                      0x401033, 0x401034, 0x401050, 0x401068, UINT64_MAX };
    bool answered[ARRAY_LEN(addrs)] = { false };
    if (size == 0)
        return 0;
    size_t strings = data[0] < size - 1 ? data[0] : size - 1;
    struct debug_line_sections sections = {
        elf_bytes_over_span(span_of(data + 1 + strings, size - 1 - strings)), span_of(data + 1, strings)
    };
    debug_line_find(&sections, NULL, 0, addrs, ARRAY_LEN(addrs), take, answered, NULL);
    return 0;
}
