/*
 * source_lookup: native_source_find() of one file on a thread of its own.
 *
 * Debug files are compressed: what is asked of libc's takes as long as naming everything else. So what was
 * found is kept for later looks, and only the rest is asked.
 */
#ifndef CLRPERF_SYMBOLIZE_SOURCE_LOOKUP_H
#define CLRPERF_SYMBOLIZE_SOURCE_LOOKUP_H

#include "symbolize/kept_folder.h"
#include "symbolize/native_source.h"

struct source_lookup;

/* Where answers about a build are kept; borrowed until the lookup is finished. */
struct source_store {
    const struct kept_folder *folder; /* NULL: nowhere */
    struct symbol_id id;
};

/*
 * Asks for `addrs` (as linked, ascending) of the ELF file `fd`, which stays the caller's. indexes[i] is what
 * addrs[i] is called in the answer. All is copied. NULL when there is nothing to find.
 */
struct source_lookup *source_lookup_start(int fd, const struct source_store *store, const uint64_t *addrs,
                                          const size_t *indexes, size_t count);
/* Waits, answers and frees it. NULL is fine. */
void source_lookup_finish(struct source_lookup *lookup, native_source_fn *answer, void *user);

#endif
