/*
 * symbol_id: what ties an image to the file with its symbols.
 *
 * For native code the GNU build id, for an assembly the id of its portable PDB: the GUID as it lies in the
 * file, and four bytes more ("PDB ID" in dotnet/runtime docs/design/specs/PE-COFF.md).
 */
#ifndef CLRPERF_READ_SYMBOL_ID_H
#define CLRPERF_READ_SYMBOL_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/source.h"
#include "read/elf.h"
#include "read/pe_debug.h"

enum symbol_kind { SYMBOL_BUILD_ID, SYMBOL_PDB };

enum { SYMBOL_ID_TEXT_BYTES = 2 * ELF_BUILD_ID_MAX + 1 };

struct symbol_id {
    enum symbol_kind kind;
    size_t size; /* of `bytes`; 0: there is none */
    uint8_t bytes[ELF_BUILD_ID_MAX];
};

/* The build id of an ELF file; size 0 when it has none. */
struct symbol_id symbol_id_of_elf(const struct elf *e);
struct symbol_id symbol_id_of_pdb(const struct pe_debug *debug);
/* A build id in hex; size 0 when the text is none. */
struct symbol_id symbol_id_from_hex(const char *text);
bool symbol_id_equals(const struct symbol_id *a, const struct symbol_id *b);
/* In lower-case hex. */
void symbol_id_text(const struct symbol_id *id, char out[SYMBOL_ID_TEXT_BYTES]);

/*
 * Whether `file` is the one that the id is of, whole, and holds symbols. ERROR_INPUT says what it is
 * instead.
 */
bool symbol_id_check(const struct symbol_id *id, const struct source *file, struct error *err);

#endif
