/*
 * host_check: what this machine and this user allow, found out by trying.
 *
 * Nothing is changed and nothing stays behind: counters are opened switched off, a BPF program is loaded and
 * dropped, probes are asked for with arguments that the kernel refuses after the rights were checked.
 */
#ifndef CLRPERF_COLLECT_HOST_CHECK_H
#define CLRPERF_COLLECT_HOST_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "collect/target.h"
#include "collect/target_walk.h"

struct host_check {
    const char *name;  /* for programs: "cpu_samples" */
    const char *title; /* for people: "CPU samples" */
    const char *lost;  /* what a result lacks without it */
    bool ok;
    bool denied;      /* rights are missing, and would help */
    char detail[256]; /* what was seen: a number, a version, the cause */
    char fix[256];    /* "" when ok, or when there is none */
};

enum { HOST_CHECKS_MAX = 32 };

struct host_check_list {
    struct host_check items[HOST_CHECKS_MAX];
    size_t count;
    bool walked; /* the jitted code of the target was found in its memory, so: */
    struct target_walk walk;
};

/* Checks the machine; with a target (else NULL) also what may be done with that. */
void host_check_run(const struct target *t, struct host_check_list *out);
/* One more, which is not ok; of the HOST_CHECKS_MAX a few are left for what only the caller can look at. */
struct host_check *host_check_add(struct host_check_list *list, const char *name, const char *title,
                                  const char *lost);
/* The check that decides whether CPU sampling works: of the target when there is one. */
const struct host_check *host_check_essential(const struct host_check_list *list);

#endif
