#include "collect/core_name.h"

#include <string.h>

#include "base/mem.h"
#include "clr/host_command.h"
#include "clr/module_name.h"

enum { KEPT_BYTES = 15 };

/* The kernel's name of an executable is cut, that of the command line is not. */
static struct span whole_name(struct span name, struct span command)
{
    size_t size = strnlen((const char *)command.data, command.size);
    const uint8_t *slash = memrchr(command.data, '/', size);
    size_t from = slash ? (size_t)(slash - command.data) + 1 : 0;
    bool is_longer = name.size == KEPT_BYTES && size - from > KEPT_BYTES &&
                     memcmp(command.data + from, name.data, KEPT_BYTES) == 0;
    return is_longer ? span_part(command, from, size - from) : name;
}

char *core_name_new(const char *executable, struct span command)
{
    struct span name = span_of(executable, strlen(executable));
    if (command.size) {
        struct span path = host_command_read(command).assembly_path;
        bool is_host = span_equals(name, span_of("dotnet", 6));
        name = is_host && path.size ? module_simple_name(path) : whole_name(name, command);
    }
    return mem_format("%.*s", (int)name.size, name.size ? (const char *)name.data : "");
}
