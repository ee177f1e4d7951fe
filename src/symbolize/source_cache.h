/*
 * source_cache: the directory in which answers about source lines are kept, for the next look at the same
 * code.
 *
 * Debug files are compressed, and to unpack libc's takes longer than all the rest of a look at a process. A
 * file "0123....lines" has answers of the build with that id (symbolize/source_answers.h); it counts for the
 * same state of the same debug file only. Beside them is what symbolize/kept_sections unpacked. The directory
 * is held to the rules of symbolize/symbol_cache.h.
 */
#ifndef CLRPERF_SYMBOLIZE_SOURCE_CACHE_H
#define CLRPERF_SYMBOLIZE_SOURCE_CACHE_H

#include "read/symbol_id.h"
#include "symbolize/source_answers.h"

enum { SOURCE_CACHE_BYTES_MAX = 64 << 20 };

/* Belongs to one thread. */
struct source_cache {
    char *path; /* absolute; NULL: there is none, nothing is found or kept. Owned */
};

/* `path` is copied; NULL is fine. It is created when there is something to keep. */
void source_cache_init(struct source_cache *cache, const char *path);
void source_cache_done(struct source_cache *cache);

/* What is kept of the build; no rows when that is nothing, or `cache` NULL. The caller ends *out. */
void source_cache_load(const struct source_cache *cache, const struct symbol_id *id,
                       const struct source_stamp *stamp, struct source_answers *out);
/*
 * Keeps sorted answers in the place of what is there. Of other builds those that were asked longest ago go
 * until the rest takes at most SOURCE_CACHE_BYTES_MAX. Fails where nothing can be kept; then all is as
 * before.
 */
bool source_cache_save(const struct source_cache *cache, const struct symbol_id *id,
                       const struct source_stamp *stamp, const struct source_answers *answers,
                       struct error *err);

#endif
