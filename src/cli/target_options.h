/*
 * target_options: how the user says which processes are meant; a group that many verbs share.
 *
 *     { .kind = OPTION_GROUP, .offset = offsetof(struct top_values, target), .group = target_option_specs }
 */
#ifndef CLRPERF_CLI_TARGET_OPTIONS_H
#define CLRPERF_CLI_TARGET_OPTIONS_H

#include "cli/option.h"
#include "collect/target_select.h"

struct target_options {
    struct option_list pids, names;
    const char *container;
    const char *cgroup;
    const char *router; /* dotnet-trace's --dsrouter */
    bool all;
};

extern const struct option_spec target_option_specs[];
extern const struct option_spec one_target_option_specs[]; /* of verbs that look at one */

/* Borrows from `options`. */
struct target_query target_options_query(const struct target_options *options);

#endif
