/*
 * target_list: all .NET processes that can be seen from here, in all containers.
 */
#ifndef CLRPERF_COLLECT_TARGET_LIST_H
#define CLRPERF_COLLECT_TARGET_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "collect/target.h"

struct target_list {
    struct target *items; /* owned, by pid */
    size_t count, capacity;
};

/* Looks through /proc. A process that ends meanwhile is left out. */
bool target_list_read(struct target_list *out, struct error *err);
/* Takes over *t, which is emptied. */
void target_list_add(struct target_list *list, struct target *t);
void target_list_done(struct target_list *list);

#endif
