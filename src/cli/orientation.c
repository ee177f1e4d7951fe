#include "cli/orientation.h"

#include <stdio.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/process_table.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

static const struct {
    const char *verb; /* shown when this build has it */
    const char *command;
    const char *does;
} commands[] = {
    { "record", "record -d 10s", "profile the process for ten seconds" },
    { "report", "report FILE", "show where its time went" },
    { "record", "record -d 10s -o cpu.svg", "the same, as a flame graph at once" },
    { "export", "export FILE -o cpu.svg", "draw a flame graph" },
    { "view", "view FILE", "look around in the browser" },
    { "top", "top", "watch the hot methods live" },
    { "stack", "stack", "the stacks of all threads, now" },
    { "counters", "counters", "watch the runtime's counters" },
    { "ps", "ps", "list the .NET processes and what can be seen of them" },
    { "doctor", "doctor", "what works on this machine, and how to fix the rest" },
};

static bool print_processes(struct error *err)
{
    struct target_list list;
    if (!target_list_read(&list, err))
        return false;
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    if (list.count) {
        AUTO_FREE struct process_access *access = process_access_read(&list);
        process_table_print(&list, access, stdout_width(), &out);
    } else {
        buffer_format(&out, "no .NET process is visible%s\n", geteuid() ? " to this user" : "");
    }
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    target_list_done(&list);
    return ok;
}

bool orientation_print(const char *program, struct error *err)
{
    if (!print_processes(err))
        return false;
    printf("\ntry:\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (verb_find(commands[i].verb))
            printf("  %s %-30s %s\n", program, commands[i].command, commands[i].does);
    }
    printf("  %s %-30s %s\n", program, "VERB --help", "the options of a verb");
    return true;
}
