/*
 * symbol_fetch: gets the symbols that images lack from symbol servers into the cache.
 */
#ifndef CLRPERF_CLI_SYMBOL_FETCH_H
#define CLRPERF_CLI_SYMBOL_FETCH_H

#include <signal.h>

#include "cli/symbol_images.h"
#include "fetch/download.h"
#include "fetch/symbol_servers.h"

struct symbol_fetch {
    struct symbol_servers *servers;
    const struct symbol_cache *cache;
    struct download_limits limits;
    uint64_t cache_bytes_max;
    const volatile sig_atomic_t *stop; /* not 0: what runs is ended, and nothing else begun */

    /* what came of it */
    size_t wanted, fetched, absent, failed, removed;
    bool stopped;
};

/*
 * Fills in `images` what was found, and for the rest the problem. False only when nothing could be tried;
 * what servers did not have, or did wrong, is counted, and told on stderr.
 */
bool symbol_fetch_run(struct symbol_fetch *fetch, struct symbol_images *images, struct error *err);

#endif
