/*
 * option: the options of a verb as a table; parsing, help and suggestions all come from it.
 */
#ifndef CLRPERF_CLI_OPTION_H
#define CLRPERF_CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum option_kind {
    OPTION_FLAG = 1,    /* bool: set by its presence */
    OPTION_COUNT,       /* uint32_t */
    OPTION_STRING,      /* const char *: borrowed from argv, NULL when not given */
    OPTION_STRING_LIST, /* struct option_list: given any number of times */
    OPTION_DURATION,    /* uint64_t, ns */
    OPTION_TIME_LIMIT,  /* the same, and not 0; only 00:00:00 is 0, as dotnet-trace says that there is none */
    OPTION_SIZE,        /* uint64_t, bytes */
    OPTION_RATE,        /* uint64_t, per second */
    OPTION_SWITCH,      /* uint8_t, enum option_switch: on by its presence, or `true`, `false` behind it */
    OPTION_GROUP,       /* a struct with a table of its own, shared by several verbs */
    OPTION_HEADING,     /* only text: `help` above the options that follow */
};

enum option_switch { SWITCH_NOT_GIVEN, SWITCH_OFF, SWITCH_ON };

struct option_list {
    const char **items; /* owned; the strings are argv's */
    size_t count, capacity;
};

/* A table ends with a row of zeros. */
struct option_spec {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset;     /* of the value in the verb's struct */
    const char *help;  /* NULL: understood, but not listed (a spelling people know from elsewhere) */
    const char *value; /* what help calls the value; NULL: a name by kind */
    const struct option_spec *group;
};

/* What is left when the options are taken away. Both borrow from argv. */
struct option_rest {
    const char **args;
    size_t arg_count;
    const char *const *command; /* behind `--`, ends with NULL; NULL when there is no `--` */
    size_t command_count;
    bool help; /* -h or --help was there; the rest was not looked at */
};

/*
 * Reads argv[0..argc) into `values` (laid out as `table` says) and *out. argv is reordered: the
 * arguments come first. Fails with ERROR_USAGE, naming the closest option where there is one.
 */
bool option_parse(const struct option_spec *table, int argc, const char **argv, void *values,
                  struct option_rest *out, struct error *err);
/* Frees what option_parse() allocated inside `values`. */
void option_values_done(const struct option_spec *table, void *values);

/* The lines of --help. */
void option_help(const struct option_spec *table, struct buffer *out);

/* The options that begin with `prefix` ("", "-" or "--pi"), a line each. */
void option_complete(const struct option_spec *table, const char *prefix, struct buffer *out);
/* The option that `word` is ("-p", "--pid"), or NULL. Its group's table holds it. */
const struct option_spec *option_find(const struct option_spec *table, const char *word);

/*
 * The first option whose value in `values` is not that of `defaults` (NULL: zeros) and whose name is not
 * among `names`, which has spaces between them; NULL when there is none.
 */
const struct option_spec *option_given_besides(const struct option_spec *table, const char *names,
                                               const void *values, const void *defaults);

/* The word of `words` that `typed` was probably meant to be, or NULL. */
const char *option_suggest(const char *typed, const char *const *words, size_t count);

#endif
