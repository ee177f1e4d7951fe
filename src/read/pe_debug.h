/*
 * pe_debug: where the debug directory of an assembly says its portable PDB is.
 *
 * Specified in dotnet/runtime docs/design/specs/PE-COFF.md, "Debug Directory": the CodeView entry names the
 * PDB with its id, the embedded entry holds it, compressed.
 */
#ifndef CLRPERF_READ_PE_DEBUG_H
#define CLRPERF_READ_PE_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/source.h"
#include "read/pe.h"

enum { PDB_ID_BYTES = 20, PE_DEBUG_PATH_MAX = 4096 };

struct pe_debug {
    uint8_t pdb_id[PDB_ID_BYTES]; /* the GUID, then the entry's stamp: what the PDB itself begins with */
    char path[PE_DEBUG_PATH_MAX]; /* where the compiler wrote the PDB, on its machine; "" when too long */
    uint64_t embedded_off;        /* of the compressed PDB, from the start of the file */
    uint32_t embedded_bytes;      /* 0: none */
    uint32_t unpacked_bytes;      /* what the entry says it unpacks to */
};

/* ERROR_UNSUPPORTED when the directory names no portable PDB. */
bool pe_debug_read(const struct source *file, const struct pe *pe, struct pe_debug *out, struct error *err);
/* Unpacks the embedded PDB into `out`, within its ceiling. */
bool pe_debug_unpack(const struct source *file, const struct pe_debug *debug, struct buffer *out,
                     struct error *err);

#endif
