/*
 * process_table: .NET processes as a table for people.
 */
#ifndef CLRPERF_CLI_PROCESS_TABLE_H
#define CLRPERF_CLI_PROCESS_TABLE_H

#include "base/buffer.h"
#include "collect/target_access.h"
#include "collect/target_list.h"

/* What may be done with each process of a list: found out once, shown in several places. */
struct process_access {
    struct target_access can[TARGET_ABILITIES];
};

/* By index of the list; the caller frees. */
struct process_access *process_access_read(const struct target_list *list);
void process_table_print(const struct target_list *list, const struct process_access *access,
                         size_t width_max, struct buffer *out);
/* A uid's name on this host, or NULL. Valid until the next call. */
const char *process_user_name(uid_t uid);

#endif
