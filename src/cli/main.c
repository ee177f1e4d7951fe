/*
 * main: finds the verb, parses its options, runs it, prints its error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "cli/message.h"
#include "cli/orientation.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

enum { HELP_BYTES_MAX = 1 << 16 };

static const struct option_spec no_options[] = { { 0 } };

static void print(struct buffer *text)
{
    fwrite(text->data, 1, text->size, stdout);
    buffer_done(text);
}

static void print_verb_help(const char *program, const struct verb *verb)
{
    struct buffer out;
    buffer_init(&out, HELP_BYTES_MAX);
    buffer_format(&out, "usage: %s %s%s%s%s\n\n  %s\n", program, verb->name,
                  verb->options ? " [options]" : "", verb->args ? " " : "", verb->args ? verb->args : "",
                  verb->summary);
    if (verb->details)
        buffer_format(&out, "\n%s\n", verb->details);
    if (verb->words)
        verb->words(&out);
    if (verb->options) {
        if (verb->options->kind != OPTION_HEADING &&
            !(verb->options->kind == OPTION_GROUP && verb->options->group->kind == OPTION_HEADING))
            buffer_string(&out, "\noptions:\n");
        option_help(verb->options, &out);
    }
    print(&out);
}

static void print_help(const char *program)
{
    struct buffer out;
    buffer_init(&out, HELP_BYTES_MAX);
    buffer_format(&out, "usage: %s VERB [options]\n\nWhy is this .NET process slow, big or stuck?\n\n",
                  program);
    for (const struct verb *const *v = verbs; *v; v++) {
        if ((*v)->summary)
            buffer_format(&out, "  %-10s %s\n", (*v)->name, (*v)->summary);
    }
    buffer_format(&out,
                  "\n'%s VERB --help' lists the options of a verb; '%s --version' says which build this is\n",
                  program, program);
    print(&out);
}

static const struct verb *find_verb(const char *name, struct error *err)
{
    const struct verb *verb = verb_find(name);
    if (verb)
        return verb;
    const char *names[64];
    size_t count = 0;
    for (const struct verb *const *v = verbs; *v && count < ARRAY_LEN(names); v++) {
        if ((*v)->summary)
            names[count++] = (*v)->name;
    }
    const char *close = option_suggest(name, names, count);
    error_set(err, ERROR_USAGE, "there is no verb '%s'", name);
    if (close)
        error_hint(err, "did you mean '%s'?", close);
    else
        error_hint(err, "clrperf --help lists the verbs");
    return NULL;
}

static bool check_call(const struct verb *verb, const struct verb_call *call, struct error *err)
{
    if (call->arg_count > verb->args_max) {
        const char *first = call->args[verb->args_max];
        error_set(err, ERROR_USAGE, "'%s' does not take the argument '%s'", verb->name, first);
        return error_hint(err,
                          verb->takes_command ? "clrperf %s -- %s ... runs that command"
                                              : "clrperf %s --help shows what it takes",
                          verb->name, first);
    }
    if (call->command && !verb->takes_command) {
        error_set(err, ERROR_USAGE, "'%s' does not run a command", verb->name);
        return error_hint(err, "leave out '--' and what follows");
    }
    if (call->command && !call->command_count) {
        error_set(err, ERROR_USAGE, "no command stands behind '--'");
        return error_hint(err, "clrperf %s -- dotnet app.dll", verb->name);
    }
    return true;
}

/* A number that a verb which looks at processes could do nothing with is one of theirs. */
static void hint_at_process(const struct verb *verb, const struct verb_call *call, struct error *err)
{
    bool takes_process = verb->options && option_find(verb->options, "--pid");
    for (size_t i = 0; takes_process && i < call->arg_count; i++) {
        char quoted[32];
        const char *arg = call->args[i];
        snprintf(quoted, sizeof quoted, "'%s'", arg);
        if (arg[0] && strspn(arg, "0123456789") == strlen(arg) && strstr(err->what, quoted))
            error_hint(err, "-p %s chooses that process", arg);
    }
}

static bool run_verb(const char *program, const struct verb *verb, int argc, const char **argv, int *out_exit,
                     struct error *err)
{
    const struct option_spec *options = verb->options ? verb->options : no_options;
    AUTO_FREE void *values = mem_alloc(1, verb->values_size ? verb->values_size : 1);
    if (verb->defaults)
        memcpy(values, verb->defaults, verb->values_size);
    struct option_rest rest = { 0 };
    bool ok = option_parse(options, argc, argv, values, &rest, err);
    if (ok && rest.help) {
        print_verb_help(program, verb);
    } else if (ok) {
        struct verb_call call = {
            values, rest.args, rest.arg_count, rest.command, rest.command_count, EXIT_OK
        };
        ok = check_call(verb, &call, err) && verb->run(&call, err);
        if (!ok && (err->kind == ERROR_USAGE || err->os_error == ENOENT))
            hint_at_process(verb, &call, err);
        *out_exit = call.exit_code;
    }
    option_values_done(options, values);
    return ok;
}

static bool run(const char *program, int argc, const char **argv, int *out_exit, struct error *err)
{
    const char *first = argc > 1 ? argv[1] : NULL;
    if (!first)
        return orientation_print(program, err);
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0 || strcmp(first, "version") == 0) {
        printf("clrperf %s\n", CLRPERF_VERSION);
        return true;
    }
    bool help = strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0;
    if (help && argc < 3) {
        print_help(program);
        return true;
    }
    const struct verb *verb = find_verb(help ? argv[2] : first, err);
    if (!verb)
        return false;
    if (help) {
        print_verb_help(program, verb);
        return true;
    }
    return run_verb(program, verb, argc - 2, argv + 2, out_exit, err);
}

/* Who starts us may have closed some: what we open next would get their numbers, and our messages. */
static void fill_standard_files(void)
{
    for (int fd = open("/dev/null", O_RDWR); fd >= 0; fd = open("/dev/null", O_RDWR))
        if (fd > STDERR_FILENO) {
            close(fd);
            return;
        }
}

int main(int argc, char **argv)
{
    fill_standard_files();
    /* as `dotnet clrperf` when that is how it was called */
    const char *base = argc && argv[0] && strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1
                       : argc                                   ? argv[0]
                                                                : "";
    const char *program = strcmp(base, "dotnet-clrperf") == 0 ? "dotnet clrperf" : "clrperf";
    struct error err = { 0 };
    int exit_code = EXIT_OK;
    if (!run(program, argc, (const char **)argv, &exit_code, &err)) {
        message_error(&err);
        return (int)message_exit_code(err.kind);
    }
    int unwritten = fflush(stdout) != 0 ? errno : ferror(stdout) ? EIO : 0;
    if (unwritten) {
        stdout_refused(unwritten, &err);
        message_error(&err);
        return EXIT_FAILED;
    }
    return exit_code;
}
