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
    { "record", "record -d 10s", "profile the one .NET process for ten seconds" },
    { "record", "record -p PID -o cpu.html", "profile until Ctrl-C, straight into a flame graph" },
    { "record", "record -- dotnet app.dll", "start a program and profile it from its first instruction" },
    { "record", "record -a -d 10s", "the whole machine" },
    { "report", "report FILE", "show which functions the time went to" },
    { "report", "report FILE --callers F", "show who calls F" },
    { "export", "export FILE -o cpu.html", "flame graph; also .svg .speedscope.json .pb.gz .folded ..." },
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
