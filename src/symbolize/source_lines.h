/*
 * source_lines: the source lines of the assemblies of one process.
 *
 * Reads an assembly's portable PDB once. Belongs to one thread.
 */
#ifndef CLRPERF_SYMBOLIZE_SOURCE_LINES_H
#define CLRPERF_SYMBOLIZE_SOURCE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/pdb_file.h"

enum {
    SOURCE_LINES_HELD_BYTES_MAX = 96 << 20, /* of all PDBs; past it those read before are read again */
};

struct source_place {
    const char *file; /* as the compiler saw it; valid until asked again */
    uint32_t line;    /* from 1 on */
    bool of_method;   /* where the method begins: the statement is not known */
};

struct source_lines;

/* `find` is copied; its files must be there to be opened. */
struct source_lines *source_lines_new(const struct pdb_finder *find);
/* NULL is fine. */
void source_lines_free(struct source_lines *lines);

/*
 * The line of a method (0x06......) of the assembly at `path`. `il_offset`: as
 * il_map_find() gives it; IL_NO_MAPPING, also when nothing is known, gives the line where the method begins.
 * False when there is no PDB, or it says nothing of the method.
 */
bool source_lines_find(struct source_lines *lines, const char *path, uint32_t token, uint32_t il_offset,
                       struct source_place *out);

/*
 * The same of the await with that number in an async method, whose MoveNext is `token`; *out_il_offset is
 * where that leaves MoveNext. False also when the PDB does not tell awaits.
 */
bool source_lines_find_await(struct source_lines *lines, const char *path, uint32_t token, uint32_t await,
                             struct source_place *out, uint32_t *out_il_offset);

/* Whether the assembly at `path` has a PDB. */
bool source_lines_has(struct source_lines *lines, const char *path);

#endif
