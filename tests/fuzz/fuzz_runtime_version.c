#include <stddef.h>
#include <stdint.h>

#include "clr/host_command.h"
#include "clr/module_name.h"
#include "clr/runtime_version.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span((struct span){ data, size });
    enum runtime_kind kind;
    struct runtime_version version;
    runtime_version_scan(&file, &kind, &version, NULL);
    runtime_version_from_path(file.memory, &version);
    runtime_version_from_text(file.memory, &version);
    struct host_command command = host_command_read(file.memory);
    module_simple_name(command.assembly_path);
    host_path_in_sdk(file.memory);
    return 0;
}
