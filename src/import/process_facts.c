#include "import/process_facts.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/host_command.h"
#include "clr/module_name.h"
#include "clr/runtime_events.h"
#include "trace/facts.h"

/* "dotnet webapi.dll --urls ..." as one text: what runs is the first word, or what `dotnet` runs. */
static void name_process(struct trace *t, uint32_t process, const char *command_line)
{
    struct trace_process *row = &t->processes.rows[process];
    AUTO_FREE char *words = mem_copy_string(command_line);
    size_t size = strlen(words);
    for (size_t i = 0; i < size; i++)
        if (words[i] == ' ')
            words[i] = 0;
    struct span first = span_of(words, strlen(words));
    struct span name = module_simple_name(first);
    if (span_equals(name, span_of("dotnet", 6))) {
        struct host_command command = host_command_read(span_of(words, size + 1));
        if (command.assembly_path.size)
            name = module_simple_name(command.assembly_path);
    }
    if (!row->name && name.size)
        row->name = intern_add(&t->strings, name);
}

void process_facts_command(struct trace_builder *b, uint32_t process, struct span payload)
{
    struct trace *t = &b->trace;
    struct runtime_process_info info;
    if (!runtime_process_info_read(payload, &info, NULL))
        return;
    uint32_t command_line = trace_add_utf16(t, info.command_line);
    t->processes.rows[process].command_line = command_line;
    name_process(t, process, trace_string(t, command_line));
    if (info.arch.size)
        trace_set_fact(t, FACT_ARCH, trace_string(t, trace_add_utf16(t, info.arch)));
}

void process_facts_runtime(struct trace_builder *b, uint32_t process, struct span payload)
{
    struct trace *t = &b->trace;
    struct runtime_information_event e;
    char version[64];
    if (!runtime_information_read(payload, &e, NULL))
        return;
    if (e.major >= 5)
        snprintf(version, sizeof version, "%u.%u.%u", e.major, e.minor, e.build / 100);
    else /* .NET Core 3 counts in another way */
        snprintf(version, sizeof version, "3.x (%u.%u.%u)", e.major, e.minor, e.build);
    t->processes.rows[process].runtime_version = trace_add_string(t, version);
}
