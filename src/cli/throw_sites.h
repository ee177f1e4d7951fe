/*
 * throw_sites: which code of a running process throws exceptions that others made.
 *
 * Stacks of a live event stream are addresses. Each is looked up once, in the process's memory and the files
 * that it has mapped.
 */
#ifndef CLRPERF_CLI_THROW_SITES_H
#define CLRPERF_CLI_THROW_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/target.h"

/*
 * Of a stack, as its thrower can be above frames of the runtime's own dispatch: none with .NET 8, two with 9,
 * one with 10.
 */
enum { THROW_FRAMES = 3 };

enum throw_site {
    THROW_SITE_UNKNOWN,
    THROW_SITE_OTHER,    /* who made the exception */
    THROW_SITE_DISPATCH, /* of the runtime: the thrower is above */
    THROW_SITE_AGAIN,    /* ExceptionDispatchInfo.Throw */
};

/* Says what is at `count` addresses. False when it can say nothing of this process any more. */
typedef bool throw_sites_ask_fn(void *user, const uint64_t *addrs, size_t count, enum throw_site *out);

struct throw_sites;

struct throw_sites *throw_sites_new(throw_sites_ask_fn *ask, void *user);
/* NULL is fine. */
void throw_sites_free(struct throw_sites *sites);
/*
 * Whether the exception that was thrown there was another's. `stack`: leaf first, its first frames. False
 * also when that is not known.
 */
bool throw_sites_again(struct throw_sites *sites, const uint64_t *stack, size_t count);

/* A throw_sites_ask_fn whose user is this; zeroed but for `target`, which is borrowed. */
struct throw_site_target {
    const struct target *target;
    void (*note)(void *user,
                 const char *text); /* told once what is lost where memory may not be read; or NULL */
    void *user;
    bool noted;
};
bool throw_sites_ask_target(void *user, const uint64_t *addrs, size_t count, enum throw_site *out);

#endif
