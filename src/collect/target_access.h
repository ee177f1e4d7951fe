/*
 * target_access: what may be done with a target, found out by trying.
 *
 * The tries change nothing in the target: a counter that is never switched on, eight bytes read, a
 * permission asked for.
 */
#ifndef CLRPERF_COLLECT_TARGET_ACCESS_H
#define CLRPERF_COLLECT_TARGET_ACCESS_H

#include <stdbool.h>

#include "base/error.h"
#include "collect/target.h"

enum target_ability {
    TARGET_SAMPLE, /* CPU samples and stacks of its user code */
    TARGET_EVENTS, /* the runtime's events, over its diagnostics socket */
    TARGET_MEMORY, /* reading its memory: names of jitted code without its help */
    TARGET_ABILITIES,
};

/* "sample", "events", "memory" */
const char *target_ability_name(enum target_ability ability);

struct target_access {
    bool ok;
    enum error_kind kind; /* ERROR_PERMISSION, or ERROR_UNSUPPORTED when rights would not help */
    char reason[256];     /* why not, with the numbers seen */
    char fix[256];        /* what to do about it */
};

struct target_access target_try(const struct target *t, enum target_ability ability);
/* The same as an error, or ERROR_TARGET when it has ended. */
bool target_require(const struct target *t, enum target_ability ability, struct error *err);

#endif
