/*
 * nettrace_tally: runs of events that one thread wrote, which are counted and not looked at, or only as
 * samples.
 */
#ifndef CLRPERF_READ_NETTRACE_TALLY_H
#define CLRPERF_READ_NETTRACE_TALLY_H

#include "read/nettrace.h"
#include "read/nettrace_block.h"

enum { NETTRACE_TALLY_TYPES_MAX = 64 };

struct nettrace_contents;

/* Of one run. */
struct nettrace_tally {
    uint64_t process_id; /* whose it is */
    uint64_t last_ticks; /* what is later is of another run */
    size_t count;
    struct nettrace_type *types[NETTRACE_TALLY_TYPES_MAX]; /* that have fresh events */
};

/*
 * Counts the records of a compressed block that follow the latest one, which was read and followed, up to the
 * first with which anything else has to be done than to tell a sample: that one is left to be read as if
 * nothing had been tried.
 */
void nettrace_tally_run(struct nettrace_contents *r, struct nettrace_block *b);

#endif
