/* An ELF file with DWARF. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "read/debug_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t addrs[] = { 0,        1,        0x401000, 0x401009, 0x401010, 0x401020,  0x401022,
                                  0x401030, 0x401031, 0x401040, 0x401080, 0x401081, 0x4010c0,  0x401100,
                                  0x401150, 0x4011a0, 0x4011f0, 0x401210, 0x401218, UINT64_MAX };

static void take(void *user, size_t index, const struct debug_inlined *inlined, size_t count)
{
    bool *answered = user;
    if (answered[index] || count == 0 || count > DEBUG_INLINED_MAX)
        abort();
    for (size_t i = 0; i < count; i++)
        if (!inlined[i].function[0] || strlen(inlined[i].call_file) >= DEBUG_LINE_PATH_MAX)
            abort();
    answered[index] = true;
}

static void take_line(void *user, size_t index, const char *file, uint32_t line)
{
    (void)user;
    if (index >= ARRAY_LEN(addrs) || line == 0 || strlen(file) >= DEBUG_LINE_PATH_MAX)
        abort();
}

static void ask(const struct debug_sections *sections)
{
    bool answered[ARRAY_LEN(addrs)] = { false };
    uint64_t programs[ARRAY_LEN(addrs)];
    struct debug_units units;
    if (!debug_units_find(sections, addrs, ARRAY_LEN(addrs), &units, NULL))
        return;
    size_t count = debug_units_line_programs(&units, sections, programs);
    debug_line_find(&sections->lines, programs, count, addrs, ARRAY_LEN(addrs), take_line, NULL, NULL);
    debug_info_find(sections, &units, addrs, take, answered, NULL);
    debug_units_done(&units);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span(span_of(data, size));
    struct elf elf;
    struct debug_sections sections;
    if (!elf_open(&file, &elf, NULL))
        return 0;
    debug_sections_open(&elf, &sections);
    ask(&sections);
    debug_sections_close(&sections);
    elf_done(&elf);
    return 0;
}
