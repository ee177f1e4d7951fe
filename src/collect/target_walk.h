/*
 * target_walk: whether the jitted code of a process can be named from its memory, found out by doing it.
 */
#ifndef CLRPERF_COLLECT_TARGET_WALK_H
#define CLRPERF_COLLECT_TARGET_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "clr/fitted_layout.h"
#include "collect/target.h"

struct target_walk {
    enum layout_way way;
    struct runtime_version version; /* that the layout is of, or "" */
    uint32_t checked, agreed;       /* methods whose record was compared with metadata */
    uint64_t methods, dynamic, unnamed;
};

/* Reads the process's memory, and stops nothing. Fails as memory_session_start() does. */
bool target_walk_try(const struct target *t, struct target_walk *out, struct error *err);

#endif
