/*
 * loaded_symbol: finds what a loaded ELF module exports, in the memory of its process.
 *
 * By the program headers, PT_DYNAMIC and the GNU hash table, all of which are loaded: no file is needed, so
 * it works for deleted files, containers and dumps. Specified in the System V ABI and, for DT_GNU_HASH, by
 * its maker's post "GNU Hash ELF Sections".
 */
#ifndef CLRPERF_CLR_LOADED_SYMBOL_H
#define CLRPERF_CLR_LOADED_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_pages.h"

struct loaded_symbol {
    uint64_t addr, size_bytes;
};

/* `base`: where the first byte of the module's file is mapped. False when nothing of that name is exported.
 */
bool loaded_symbol_find(struct memory_pages *pages, uint64_t base, const char *name,
                        struct loaded_symbol *out);

#endif
