/*
 * symbol_store: where this user's fetched symbols are.
 *
 * $CLRPERF_SYMBOLS, else clrperf/symbols in $XDG_CACHE_HOME or in ~/.cache.
 */
#ifndef CLRPERF_CLI_SYMBOL_STORE_H
#define CLRPERF_CLI_SYMBOL_STORE_H

#include "symbolize/kept_folder.h"
#include "symbolize/symbol_cache.h"

/* NULL when the environment names none. The caller frees. */
char *symbol_store_path(void);
/* Where what was found out about images is kept: clrperf/images in $XDG_CACHE_HOME or in ~/.cache. */
void symbol_store_open_kept(struct kept_folder *out);
/*
 * Where the kernel's symbols are kept for the boot: clrperf/kernel in $XDG_CACHE_HOME or in ~/.cache. NULL
 * when the environment names none, or where we may see more of the kernel than our user. The caller frees.
 */
char *symbol_store_kernel_path(void);
/* To read from. Without a directory when nothing was fetched yet; a warning says when it may not be used. */
void symbol_store_open(struct symbol_cache *out);
/* To fetch into. */
bool symbol_store_create(struct symbol_cache *out, struct error *err);

#endif
