/*
 * pdb_file: the portable PDB of one assembly.
 *
 * Embedded in the assembly, at the path its debug directory names, beside the assembly, or among those that
 * were fetched; and only one that carries the id the assembly asks for.
 */
#ifndef CLRPERF_SYMBOLIZE_PDB_FILE_H
#define CLRPERF_SYMBOLIZE_PDB_FILE_H

#include <stdbool.h>

#include "clr/loaded_module.h"
#include "read/pe_debug.h"
#include "read/portable_pdb.h"
#include "symbolize/symbol_cache.h"
#include "symbolize/symbol_place.h"

struct pdb_finder {
    struct module_files files;        /* as the process sees them */
    const struct symbol_cache *cache; /* or NULL */
};

/* The last part of a path of any system, as the compiler may have run elsewhere. */
const char *pdb_file_name(const char *path);
/*
 * Loads the PDB of the assembly in `file`, which lies at `path`, into `bytes`; *out borrows them. False when
 * there is none.
 */
bool pdb_file_load(const struct pdb_finder *find, const struct source *file, const char *path,
                   const struct pe_debug *debug, struct buffer *bytes, struct portable_pdb *out,
                   struct symbol_place *out_place);

#endif
