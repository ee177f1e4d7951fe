/*
 * source_lines: the source lines of the assemblies of one process.
 *
 * Reads an assembly's portable PDB once: embedded in the assembly, at the path its debug directory names, or
 * beside the assembly; and only one that carries the id the assembly asks for. Belongs to one thread.
 */
#ifndef CLRPERF_SYMBOLIZE_SOURCE_LINES_H
#define CLRPERF_SYMBOLIZE_SOURCE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "clr/loaded_module.h"

enum {
    SOURCE_LINES_PDB_BYTES_MAX = 128 << 20,
    SOURCE_LINES_HELD_BYTES_MAX = 96 << 20, /* of all PDBs; past it those read before are read again */
};

struct source_place {
    const char *file; /* as the compiler saw it; valid until asked again */
    uint32_t line;    /* from 1 on */
    bool of_method;   /* where the method begins: the statement is not known */
};

struct source_lines;

/* `files` opens files as the process sees them; copied. */
struct source_lines *source_lines_new(const struct module_files *files);
/* NULL is fine. */
void source_lines_free(struct source_lines *lines);

/*
 * The line of a method (0x06......) of the assembly at `path`. `il_offset`: as
 * il_map_find() gives it; IL_NO_MAPPING, also when nothing is known, gives the line where the method begins.
 * False when there is no PDB, or it says nothing of the method.
 */
bool source_lines_find(struct source_lines *lines, const char *path, uint32_t token, uint32_t il_offset,
                       struct source_place *out);

/* Whether the assembly at `path` has a PDB. */
bool source_lines_has(struct source_lines *lines, const char *path);

#endif
