#include "cli/target_options.h"

const struct option_spec target_option_specs[] = {
    { .kind = OPTION_HEADING, .help = "which processes (with one .NET process visible, that one)" },
    { "pid", 'p', OPTION_STRING_LIST, offsetof(struct target_options, pids), "by process id", "PID[,PID]" },
    { "process-id", 0, OPTION_STRING_LIST, offsetof(struct target_options, pids), NULL },
    { "name", 'n', OPTION_STRING_LIST, offsetof(struct target_options, names),
      "by entry assembly (with or without .dll) or process name; * and ? match", "NAME" },
    { "all", 'a', OPTION_FLAG, offsetof(struct target_options, all),
      "all .NET processes; record: the whole machine" },
    { "container", 0, OPTION_STRING, offsetof(struct target_options, container), "those in a container",
      "ID|NAME" },
    { "cgroup", 0, OPTION_STRING, offsetof(struct target_options, cgroup), "those in a cgroup and below it",
      "PATH" },
    { "dsrouter", 0, OPTION_STRING, offsetof(struct target_options, router), NULL }, /* to be told why not */
    { 0 },
};

const struct option_spec one_target_option_specs[] = {
    { .kind = OPTION_HEADING, .help = "which process (with one .NET process visible, that one)" },
    { "pid", 'p', OPTION_STRING_LIST, offsetof(struct target_options, pids), "by process id", "PID" },
    { "process-id", 0, OPTION_STRING_LIST, offsetof(struct target_options, pids), NULL },
    { "name", 'n', OPTION_STRING_LIST, offsetof(struct target_options, names),
      "by entry assembly (with or without .dll) or process name; * and ? match", "NAME" },
    { "all", 'a', OPTION_FLAG, offsetof(struct target_options, all), NULL }, /* of which there must be one */
    { "container", 0, OPTION_STRING, offsetof(struct target_options, container), "the one in a container",
      "ID|NAME" },
    { "cgroup", 0, OPTION_STRING, offsetof(struct target_options, cgroup), "the one in a cgroup and below it",
      "PATH" },
    { "dsrouter", 0, OPTION_STRING, offsetof(struct target_options, router), NULL }, /* to be told why not */
    { 0 },
};

struct target_query target_options_query(const struct target_options *options)
{
    return (struct target_query){
        .pids = options->pids.items,
        .pid_count = options->pids.count,
        .names = options->names.items,
        .name_count = options->names.count,
        .container = options->container,
        .cgroup = options->cgroup,
        .router = options->router,
        .all = options->all,
    };
}
