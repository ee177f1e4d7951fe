/*
 * verb: what one word behind `clrperf` does; one file per verb, listed in verbs.c.
 */
#ifndef CLRPERF_CLI_VERB_H
#define CLRPERF_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/option.h"

/* How a run ends; names and numbers are fixed by the contract. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_TARGET = 3,      /* no such, gone or ambiguous target */
    EXIT_PERMISSION = 4,  /* not permitted */
    EXIT_UNSUPPORTED = 5, /* not supported here */
    EXIT_LOSS = 6,        /* finished, but lost more than --max-loss */
};

struct verb_call {
    const void *values; /* the verb's struct, filled from its options */
    const char *const *args;
    size_t arg_count;
    const char *const *command; /* behind `--`, ends with NULL; NULL when there is no `--` */
    size_t command_count;
    int exit_code; /* set by the verb when it is not EXIT_OK though nothing failed */
};

struct verb {
    const char *name;
    const char *args;    /* how usage shows them, or NULL when there are none */
    const char *summary; /* a line for the list of verbs */
    const char *details; /* text for --help below the summary, or NULL */
    void (*words)(
        struct buffer *out); /* appends what its arguments can be, a line each, for --help; or NULL */
    const struct option_spec *options; /* or NULL */
    const void *defaults;              /* of values_size bytes, or NULL: all zero */
    size_t values_size;
    size_t args_max;
    bool takes_command; /* `-- COMMAND` means something */
    /* The error is printed, and decides the exit code. */
    bool (*run)(struct verb_call *call, struct error *err);
};

/* All verbs, in the order of help; ends with NULL. */
extern const struct verb *const verbs[];
/* By name or by a spelling known from other tools; NULL when there is none. */
const struct verb *verb_find(const char *name);

#endif
