#include "cli/orientation.h"

#include <stdio.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/process_table.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

/* How many .NET processes there are to choose from. */
enum { NONE = 1, ONE = 2, SEVERAL = 4, ANY = NONE | ONE | SEVERAL };

static const struct {
    unsigned when;
    const char *verb; /* shown when this build has it */
    const char *command;
    const char *does;
} commands[] = {
    { ONE, "record", "record -d 10s", "profile the one .NET process for ten seconds" },
    { SEVERAL, "record", "record -p PID -d 10s", "profile one of them for ten seconds" },
    { ONE | SEVERAL, "record", "record -p PID -o cpu.html",
      "profile until Ctrl-C, straight into a flame graph" },
    { ANY, "record", "record -- dotnet app.dll",
      "start a program and profile it from its first instruction" },
    { ANY, "record", "record -a -d 10s", "the whole machine" },
    { ANY, "report", "report FILE", "show which functions the time went to" },
    { ANY, "report", "report FILE --callers F", "show who calls F" },
    { ANY, "export", "export FILE -o cpu.html",
      "flame graph; also .svg .speedscope.json .pb.gz .folded ..." },
    { ANY, "ps", "ps", "list the .NET processes and what can be seen of them" },
    { ANY, "doctor", "doctor", "what works on this machine, and how to fix the rest" },
};

/* As verbs choose without -p: commands of the SDK are rarely what is meant. */
static unsigned choice_of(const struct target_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += !list->items[i].sdk_tool;
    return count == 0 ? NONE : count == 1 ? ONE : SEVERAL;
}

static bool print_processes(unsigned *out_choice, struct error *err)
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
    *out_choice = choice_of(&list);
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    target_list_done(&list);
    return ok;
}

bool orientation_print(const char *program, struct error *err)
{
    unsigned choice;
    if (!print_processes(&choice, err))
        return false;
    printf("\ntry:\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if ((commands[i].when & choice) && verb_find(commands[i].verb))
            printf("  %s %-30s %s\n", program, commands[i].command, commands[i].does);
    }
    printf("  %s %-30s %s\n", program, "VERB --help", "the options of a verb");
    return true;
}
