/*
 * symbol_cache: the directory of symbol files that were fetched, each named after the id it belongs to.
 *
 * "0123....debug" has the symbols of native code, "0123....pdb" those of an assembly. A file enters under its
 * name when it was found to be what the id is of; which one was used longest ago is told by the times of
 * access, set by us. The directory and all around it must be ours or root's: nobody else decides where we
 * write, or what we read.
 */
#ifndef CLRPERF_SYMBOLIZE_SYMBOL_CACHE_H
#define CLRPERF_SYMBOLIZE_SYMBOL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/replaced_file.h"
#include "read/symbol_id.h"

enum { SYMBOL_CACHE_NAME_BYTES = SYMBOL_ID_TEXT_BYTES + 8 };

/* What is made here of a build's debug file, or of an image, and not fetched. */
enum symbol_cache_made {
    SYMBOL_CACHE_LINES,    /* "0123....lines", by symbolize/kept_lines */
    SYMBOL_CACHE_SECTIONS, /* "0123....dwarf", by symbolize/kept_sections */
    SYMBOL_CACHE_INDEX,    /* "0123....index", by symbolize/kept_index */
};

struct symbol_cache {
    int directory_fd; /* -1: there is none, and nothing is found */
};

/*
 * Opens the directory at `path`, absolute; `create` makes it, with what it lies in. ERROR_PERMISSION when
 * somebody else could change it. On failure *out has no directory.
 */
bool symbol_cache_open(const char *path, bool create, struct symbol_cache *out, struct error *err);
void symbol_cache_close(struct symbol_cache *cache);

void symbol_cache_name(const struct symbol_id *id, char out[SYMBOL_CACHE_NAME_BYTES]);
/* An open file that the caller closes, or -1. It counts as used now. `cache` may be NULL. */
int symbol_cache_find(const struct symbol_cache *cache, const struct symbol_id *id);

/* A file to fill, which symbol_cache_keep() or replaced_file_abandon() ends. */
bool symbol_cache_begin(const struct symbol_cache *cache, const struct symbol_id *id,
                        struct replaced_file *out, struct error *err);
/* Takes the file when it is what the id is of (symbol_id_check()); else nothing of it stays. */
bool symbol_cache_keep(const struct symbol_id *id, struct replaced_file *file, struct error *err);
/* The same for what was made here. replaced_file_commit() ends it. */
int symbol_cache_find_made(const struct symbol_cache *cache, const struct symbol_id *id,
                           enum symbol_cache_made what);
bool symbol_cache_begin_made(const struct symbol_cache *cache, const struct symbol_id *id,
                             enum symbol_cache_made what, struct replaced_file *out, struct error *err);
/*
 * Removes the files used longest ago until the rest takes at most `limit_bytes`; the one used last stays.
 * Leftovers of fetches that were killed go too. Returns how many files went.
 */
size_t symbol_cache_trim(const struct symbol_cache *cache, uint64_t limit_bytes);

#endif
