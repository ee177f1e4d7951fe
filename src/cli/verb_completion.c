/*
 * verb_completion: what a shell offers when Tab is pressed, from the same tables as --help.
 *
 * `clrperf completion SHELL` prints a few lines for the shell's start-up file; those ask `clrperf
 * __complete`.
 */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "cli/question.h"
#include "cli/standard_output.h"
#include "cli/target_options.h"
#include "cli/verb.h"
#include "collect/target_list.h"
#include "render/export_format.h"

/* Candidates are taken as they are: bash's compgen -W would expand a name such as $(reboot). */
static const char bash_script[] =
    "_clrperf() {\n"
    "    mapfile -t COMPREPLY < <(clrperf __complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -o bashdefault -o default -F _clrperf clrperf\n";
static const char zsh_script[] =
    "_clrperf() {\n"
    "    local -a found\n"
    "    found=(${(f)\"$(clrperf __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
    "    (( $#found )) && compadd -- $found || _files\n"
    "}\n"
    "compdef _clrperf clrperf\n";
static const char fish_script[] = "complete -c clrperf -a '(clrperf __complete -- (commandline -opc)[2..] "
                                  "(commandline -ct) 2>/dev/null)'\n";

static bool print(const char *text, struct error *err)
{
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_string(&out, text);
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    return ok;
}

static bool completion_run(struct verb_call *call, struct error *err)
{
    const char *shell = call->arg_count ? call->args[0] : "";
    if (strcmp(shell, "bash") == 0)
        return print(bash_script, err);
    if (strcmp(shell, "zsh") == 0)
        return print(zsh_script, err);
    if (strcmp(shell, "fish") == 0)
        return print(fish_script, err);
    error_set(err, ERROR_USAGE, "there is no completion for the shell '%s'", shell);
    return error_hint(err, "clrperf completion bash, zsh or fish");
}

/* A name that means nothing to a shell. */
static bool is_plain(const char *text)
{
    return *text &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-") == strlen(text);
}

static void offer(struct buffer *out, const char *candidate, const char *typed)
{
    if (is_plain(candidate) && strncmp(candidate, typed, strlen(typed)) == 0)
        buffer_format(out, "%s\n", candidate);
}

/* The values of -p and -n: what runs now. */
static void offer_targets(const struct option_spec *option, const char *typed, struct buffer *out)
{
    bool pids = option->offset == offsetof(struct target_options, pids);
    struct target_list list;
    if (!pids && option->offset != offsetof(struct target_options, names))
        return;
    if (!target_list_read(&list, NULL))
        return;
    for (size_t i = 0; i < list.count; i++) {
        char pid[16];
        snprintf(pid, sizeof pid, "%d", (int)list.items[i].pid);
        offer(out, pids ? pid : target_label(&list.items[i]), typed);
    }
    target_list_done(&list);
}

static void offer_verbs(const char *typed, struct buffer *out)
{
    for (const struct verb *const *v = verbs; *v; v++) {
        if ((*v)->summary)
            offer(out, (*v)->name, typed);
    }
}

static void offer_formats(const char *typed, struct buffer *out)
{
    size_t count;
    const struct export_format *formats = export_formats(&count);
    for (size_t i = 0; i < count; i++) {
        if (export_format_by_name(formats[i].name) == &formats[i])
            offer(out, formats[i].name, typed);
    }
}

static void offer_symbol_actions(const char *typed, struct buffer *out)
{
    static const char *const actions[] = { "list", "fetch", "path" };
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        offer(out, actions[i], typed);
}

static void offer_questions(const char *typed, struct buffer *out)
{
    for (const struct question *const *q = questions; *q; q++)
        offer(out, (*q)->name, typed);
}

/* The words behind `clrperf`; the last one is being typed. */
static void complete(const char *const *words, size_t count, struct buffer *out)
{
    const char *typed = count ? words[count - 1] : "";
    if (count < 2) {
        offer_verbs(typed, out);
        return;
    }
    const struct verb *verb = verb_find(words[0]);
    if (!verb || !verb->options)
        return;
    if (count == 2 && strcmp(verb->name, "symbols") == 0)
        offer_symbol_actions(typed, out);
    if (count == 3 && strcmp(verb->name, "report") == 0)
        offer_questions(typed, out);
    for (size_t i = 1; i + 1 < count; i++) {
        if (strcmp(words[i], "--") == 0)
            return; /* a command of somebody else */
    }
    const char *before = words[count - 2];
    const struct option_spec *option = count > 2 ? option_find(verb->options, before) : NULL;
    if (!option || option->kind == OPTION_FLAG) {
        if (*typed == '-')
            option_complete(verb->options, typed, out);
    } else if (option_find(target_option_specs, before) == option ||
               option_find(one_target_option_specs, before) == option) {
        offer_targets(option, typed, out);
    } else if (strcmp(option->name, "format") == 0) {
        offer_formats(typed, out);
    } else if (strcmp(option->name, "group") == 0) {
        offer(out, "runtime", typed);
    }
}

static bool complete_run(struct verb_call *call, struct error *err)
{
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    complete(call->command, call->command_count, &out);
    bool ok = stdout_text(&out, err);
    buffer_done(&out);
    return ok;
}

const struct verb verb_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .summary = "print the lines that teach a shell to complete clrperf's verbs and options",
    .details = "  bash: put  source <(clrperf completion bash)  into ~/.bashrc",
    .args_max = 1,
    .run = completion_run,
};

const struct verb verb_complete = {
    .name = "__complete",
    .takes_command = true,
    .run = complete_run,
};
