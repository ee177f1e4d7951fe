/*
 * name_tally: how often names came, and with how many bytes.
 */
#ifndef CLRPERF_ANALYSE_NAME_TALLY_H
#define CLRPERF_ANALYSE_NAME_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

enum { NAME_TALLY_NAMES_MAX = 1 << 16, NAME_TALLY_BYTES_MAX = 8 << 20 };

struct name_tally_row {
    uint32_t name; /* of `names` */
    uint64_t count, bytes;
};

struct name_tally {
    struct intern names;
    struct name_tally_row *rows; /* by name; [0] is of names that are empty or too many to keep */
    size_t capacity;
    uint64_t count, bytes; /* of all */
};

void name_tally_init(struct name_tally *tally);
void name_tally_done(struct name_tally *tally);
void name_tally_add(struct name_tally *tally, struct span name, uint64_t bytes);
/* Forgets all. */
void name_tally_clear(struct name_tally *tally);
/* The names with the most bytes, then the most often; at most `most`. Returns how many. */
size_t name_tally_top(const struct name_tally *tally, struct name_tally_row *out, size_t most);
/* A row's name; "" of those that were not kept. */
const char *name_tally_name(const struct name_tally *tally, const struct name_tally_row *row);

#endif
