/*
 * portable_pdb: the source lines of an assembly's methods.
 *
 * Specified in dotnet/runtime docs/design/specs/PortablePdb-Metadata.md: metadata whose tables Document and
 * MethodDebugInformation say which IL offset of which method begins which statement.
 */
#ifndef CLRPERF_READ_PORTABLE_PDB_H
#define CLRPERF_READ_PORTABLE_PDB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "read/ecma_metadata.h"

enum { PORTABLE_PDB_BYTES_MAX = 128 << 20 }; /* larger ones are not read */

struct portable_pdb {
    struct ecma_metadata md; /* borrows the bytes */
};

/* `bytes` is borrowed for as long as *out is used. ERROR_INPUT when it is no portable PDB. */
bool portable_pdb_open(struct span bytes, struct portable_pdb *out, struct error *err);
/* The 20 bytes that the assembly names it by. */
struct span portable_pdb_id(const struct portable_pdb *pdb);

struct pdb_line {
    uint32_t document; /* row of the table Document */
    uint32_t line;     /* from 1 on */
};

/*
 * The line of the statement that holds an IL offset of a MethodDef row. Code without a line of its own, which
 * the compiler marks as hidden, counts to the statement before it. False when the method has no lines.
 */
bool portable_pdb_find(const struct portable_pdb *pdb, uint32_t method_row, uint32_t il_offset,
                       struct pdb_line *out);
/*
 * Where in the IL of an async method's MoveNext its await number `index`, from 0, leaves it. False when the
 * PDB does not say, or there are fewer.
 */
bool portable_pdb_await(const struct portable_pdb *pdb, uint32_t method_row, uint32_t index,
                        uint32_t *out_il_offset);
/* Replaces the content of `out` by a document's path as the compiler saw it, UTF-8, not NUL-ended. */
bool portable_pdb_document(const struct portable_pdb *pdb, uint32_t document, struct buffer *out);

#endif
