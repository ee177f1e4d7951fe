/* A core dump: its mappings are in order, its memory can be read anywhere, also for what command it was. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collect/core_command.h"
#include "collect/core_name.h"
#include "read/core_file.h"

enum { COMMAND_BYTES_MAX = 1 << 19 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span((struct span){ data, size });
    struct core_file core;
    uint8_t bytes[64];
    if (!core_file_open(&file, &core, NULL))
        return 0;
    uint64_t end = 0;
    for (size_t i = 0; i < core.memory.mapping_count; i++) {
        const struct memory_mapping *m = &core.memory.mappings[i];
        if (m->start < end || m->end <= m->start || !m->path)
            abort();
        end = m->end;
        memory_read(&core.memory, m->start, bytes, sizeof bytes);
        memory_read(&core.memory, m->end - 8, bytes, sizeof bytes);
        if (memory_mapping_at(&core.memory, m->start) != m)
            abort();
    }
    if (core.thread_count == 0 || strlen(core.name) >= sizeof core.name)
        abort();
    struct buffer command;
    buffer_init(&command, COMMAND_BYTES_MAX);
    if (core_command_read(&core, &command) && command.data[command.size - 1])
        abort();
    free(core_name_new(core.name, buffer_span(&command)));
    buffer_done(&command);
    core_file_close(&core);
    return 0;
}
