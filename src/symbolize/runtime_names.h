/*
 * runtime_names: names of functions in a stripped .NET runtime, by the tables that its own code goes by.
 */
#ifndef CLRPERF_SYMBOLIZE_RUNTIME_NAMES_H
#define CLRPERF_SYMBOLIZE_RUNTIME_NAMES_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "read/eh_frame.h"
#include "read/elf.h"
#include "symbolize/symbol_table.h"

enum runtime_table { RUNTIME_QCALLS, RUNTIME_JIT_HELPERS, RUNTIME_FCALLS, RUNTIME_TABLES };

struct runtime_names {
    struct symbol_table tables[RUNTIME_TABLES]; /* sorted */
    struct buffer strings[RUNTIME_TABLES];      /* of their names; those of RUNTIME_QCALLS are in the file */
};

/* Where there are no such tables *out has no names. Undo with runtime_names_done(). */
void runtime_names_find(const struct elf *e, const struct eh_ranges *functions, struct runtime_names *out);
void runtime_names_done(struct runtime_names *names);

/* As bytes, by table: u32le rows, of each u32le start, size, name and u8 rank; u32le size of the strings. */
void runtime_names_write(const struct runtime_names *names, struct buffer *out);
/* What was written of the same image. False when it cannot be that; *out has no names then. */
bool runtime_names_read(struct cursor *c, const struct elf *e, struct runtime_names *out);

#endif
